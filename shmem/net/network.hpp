// SPDX-License-Identifier: Apache-2.0
// Communication with PEs on other nodes: copies to and from their symmetric memory, atomic operations on it, messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/layout/pe_set.hpp"
#include "shmem/layout/remote_board.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Where a PE has a segment.
struct SegmentAddress {
  std::uint64_t address = 0;  // in the address space of its PE
  std::uint64_t bytes = 0;    // 0: no segment
  std::vector<std::byte> key = {};
};

/// A message that has come, also one of another length than expected.
struct Arrival {
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
};

enum class AtomicOperation : std::uint8_t { kAdd, kAnd, kOr, kXor, kSwap, kCompareSwap, kFetch, kSet };

/// The tags that have these bits of `mask`.
struct TagPattern {
  std::uint64_t tag;
  std::uint64_t mask;
};

struct NetworkSettings {
  /// This PE's segments in the order of Segment; an empty one does not exist. They outlive the network.
  std::vector<std::span<std::byte>> segments;
  /// Whether the network reaches each PE of the world: those on other nodes.
  std::vector<bool> is_remote;
  /// "PE 3 (on kiwi)", for messages.
  std::vector<std::string> names;
  /// No call waits longer for another PE; 0: no limit.
  std::chrono::milliseconds limit{0};
  /// A call that waits so long for another PE says so, and again whenever twice that has passed; 0: never.
  std::chrono::milliseconds warning{0};
  /// How long a call stays on its processor before it sleeps.
  WaitPolicy policy = wait_policy(1);
  /// Called by each thread that has made progress: words of this PE may have changed. Thread-safe; may be called until
  /// the network is destroyed.
  std::function<void()> worked{};
  /// Never use TCP: fail instead. SHMEM_NETWORK_REQUIRE=rdma.
  bool rdma_only = false;
  /// Which messages end waits for a message with this tag (Network::has_come); none: its waits end as usual. Empty: no
  /// message does.
  std::function<std::optional<TagPattern>(std::uint64_t tag)> interrupts{};
  /// Use UCX's own one-sided operations even if no adapter has them. For tests.
  bool direct = false;
  /// The UCX library to load.
  std::string library = "libucp.so.0";
};

/// One PE's end of the network. Thread-safe. A PE that cannot be reached, or is lost, is an Error that names it, in
/// this call and in all later calls for that PE. The end of the job and a wait beyond the limit are Errors too.
///
/// Only fence() and quiet() order calls, as in OpenSHMEM 1.6, section 9.12.
class Network : public Background {
 public:
  // Copies. put() returns when the caller may change `from`, get() when the bytes have arrived. start_put() and
  // start_get() are complete after the next quiet(); the caller leaves their local bytes alone until then. After
  // quiet(), even a failed one, the bytes are the caller's again: the PE is given up if there is no other way.
  virtual Result<void> put(const RemotePlace& to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> get(void* to, const RemotePlace& from, std::size_t bytes) = 0;
  virtual Result<void> start_put(const RemotePlace& to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> start_get(void* to, const RemotePlace& from, std::size_t bytes) = 0;

  /// On a word of 4 or 8 bytes; also atomic to the processors of its node. Returns the value before.
  virtual Result<std::uint64_t> fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                             std::uint64_t operand, std::uint64_t compared = 0) = 0;
  /// The same without an answer; complete after quiet().
  virtual Result<void> post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                   std::uint64_t operand) = 0;

  /// Earlier puts to these PEs arrive before later puts to the same PE. Waits for no other PE.
  virtual Result<void> fence(PeChoice pes) = 0;
  /// Everything that this PE has begun on these PEs is complete, at both ends. Waits for no other PE.
  virtual Result<void> quiet(PeChoice pes) = 0;
  // The same for all PEs.
  Result<void> fence() { return fence(PeChoice()); }
  Result<void> quiet() { return quiet(PeChoice()); }

  // Messages of one tag from one PE to another stay in order. A receive takes a message of exactly that PE and tag. A
  // message of another length than `bytes` is an Error, and is never written beyond them. What has come from a PE that
  // was lost since can still be received.
  /// Starts only: the caller leaves `from` alone until wait().
  virtual Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) = 0;
  virtual Result<std::uint64_t> start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) = 0;
  /// The next message of that PE with any such tag. `arrival` is written before the request is over, unless it fails
  /// for another reason than the length.
  virtual Result<std::uint64_t> start_receive_any(int /*pe*/, const TagPattern& /*tags*/, void* /*to*/,
                                                  std::size_t /*bytes*/, Arrival& /*arrival*/) {
    return fail(std::errc::not_supported, "shmem: this network receives messages of one tag only");
  }
  /// Bytes of all sends that were started.
  [[nodiscard]] virtual std::uint64_t sent_bytes() const { return 0; }
  /// Waits for the send or receive. Afterwards, even after an Error, its number is invalid and its memory is the
  /// caller's. `limit` replaces that of the settings.
  virtual Result<void> wait(std::uint64_t request, std::optional<std::chrono::nanoseconds> limit = {}) = 0;
  /// True or an Error: as after wait(). False: still under way.
  virtual Result<bool> test(std::uint64_t request) = 0;
  /// Gives up a send or receive after another one of the same call has failed. It may or may not have been done; then
  /// as after wait(). Does not wait for the other PE. If a send cannot be withdrawn, the PE is given up and counts as
  /// lost.
  virtual void cancel(std::uint64_t request) = 0;
  /// Some PE has sent such a message, which no receive has taken yet. As of the last progress.
  [[nodiscard]] virtual bool has_come(const TagPattern& pattern) = 0;
  /// This PE has.
  [[nodiscard]] virtual bool has_come_from(int /*pe*/, const TagPattern& /*pattern*/) { return false; }

  // Memory of this PE that PEs on other nodes reach as `segment`, one from kFirstRegistered on. A PE that is about to
  // be reached calls add_segment() first; after all PEs have, attach_segment() lets this one reach the others'.
  /// The key that other PEs need; empty if they need none. An Error leaves nothing.
  virtual Result<std::vector<std::byte>> add_segment(Segment segment, std::span<std::byte> memory) = 0;
  /// `places`: of each PE of the world; one without bytes has no such segment.
  virtual void attach_segment(Segment segment, std::vector<SegmentAddress> places) = 0;
  /// Both ends. No operation on it is under way, here or on other PEs.
  virtual void remove_segment(Segment segment) = 0;

  /// Sleeps until there may be something to progress, up to `longest`.
  virtual void sleep(std::chrono::nanoseconds longest) = 0;
  /// Ends the sleep of another thread.
  virtual void wake() = 0;
  /// Whether this PE has found so, in a call for that PE or afterwards.
  [[nodiscard]] virtual bool has_lost(int pe) const = 0;
  /// What was begun on this PE is given up, if it is lost: no later quiet() fails because of it.
  virtual void forget_lost(int /*pe*/) {}
  /// The same, lost or not: its memory is the caller's again. The PE may be lost because of it.
  virtual void leave_out(int /*pe*/) {}
  /// The first PE that was lost, and why.
  [[nodiscard]] virtual std::optional<Error> lost() const = 0;
  /// "ucx 1.13 (tcp)", for SHMEM_INFO.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Collective over the world, which outlives the network: each PE makes its end, then PEs exchange addresses and the
/// keys of their segments. All succeed or all get the Error of the first PE that failed, with its name. Fails if
/// libshmem was built without UCX, or the library is missing.
Result<std::unique_ptr<Network>> make_network(Bootstrap& world, NetworkSettings settings);

/// A thread that makes progress while the program computes, until the jthread is destroyed. `network` outlives it.
Result<std::jthread> start_progress_thread(Network& network);

}  // namespace shmem
