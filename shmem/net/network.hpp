// SPDX-License-Identifier: Apache-2.0
// What goes to PEs on other nodes: copies to and from their symmetric memory, atomic operations on it, and messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The parts of a PE's memory that others may reach, the same on all PEs.
enum class Segment : std::uint8_t { kHeap, kGlobals, kBoard };
constexpr std::size_t kSegments = 3;

/// A byte of another PE's memory. `pe` is its number in the world.
struct FarPlace {
  int pe;
  Segment segment;
  std::uint64_t offset;
};

enum class AtomicOperation : std::uint8_t { kAdd, kAnd, kOr, kXor, kSwap, kCompareSwap, kFetch, kSet };

struct NetworkSettings {
  /// My own segments in the order of Segment; empty: there is none. They outlive the network.
  std::vector<std::span<std::byte>> segments;
  /// For which PEs of the world there is a network at all: those on other nodes.
  std::vector<bool> is_far;
  /// "PE 3 (on kiwi)", for messages.
  std::vector<std::string> names;
  /// No call waits longer for another PE; 0: for ever.
  std::chrono::milliseconds limit{0};
  /// How long a call stays on its processor before it sleeps.
  WaitPolicy patience = wait_policy(1);
  /// Several threads call at once.
  bool threads = false;
  /// By UCX's own one-sided operations even where no adapter has them: tests of what is for adapters.
  bool direct = false;
  /// What is loaded.
  std::string library = "libucp.so.0";
};

/// One PE's end of the network. All calls may be made by several threads at once if that was asked for. A PE that
/// cannot be reached, or has been lost, is an Error that names it, in this call and in all later ones for it; so are
/// the end of the job and a wait for longer than the limit.
///
/// Nothing is promised of the order of two calls but by fence() and quiet(), as OpenSHMEM 1.6, section 9.10, has them.
class Network : public Background {
 public:
  // Copies. put() returns when `from` may be used again, get() when the bytes are there; those that are started are
  // done after the next quiet(), until which their local bytes are not touched. Whatever comes of that, they belong to
  // the caller again: a PE is lost if they cannot be had back otherwise.
  virtual Result<void> put(const FarPlace& to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> get(void* to, const FarPlace& from, std::size_t bytes) = 0;
  virtual Result<void> start_put(const FarPlace& to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> start_get(void* to, const FarPlace& from, std::size_t bytes) = 0;

  /// Of a word of 4 or 8 bytes, whole, also towards atomic operations of the processors of its node. The value that it
  /// had before.
  virtual Result<std::uint64_t> fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                             std::uint64_t operand, std::uint64_t compared = 0) = 0;
  /// The same without an answer; done after quiet().
  virtual Result<void> post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                   std::uint64_t operand) = 0;

  /// What was put before is there before what is put later, PE by PE.
  virtual Result<void> fence() = 0;
  /// All that this PE has begun is done, there and here.
  virtual Result<void> quiet() = 0;

  // Messages, in order from one PE to another for the same tag. A receive takes the message of that PE and tag alone;
  // one whose length is not `bytes` is an Error of both kinds of memory overrun: it never writes beyond them.
  /// Started, not waited for; `from` is not touched until wait().
  virtual Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) = 0;
  virtual Result<std::uint64_t> start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) = 0;
  /// Until the send or receive is done. Whatever comes of it, it has no number any more then, and its memory is not
  /// touched any more. `limit` in place of that of the settings.
  virtual Result<void> wait(std::uint64_t request, std::optional<std::chrono::nanoseconds> limit = {}) = 0;
  /// True, or an Error: it has no number any more, as after wait(). False: it is under way.
  virtual Result<bool> test(std::uint64_t request) = 0;
  /// Gives up a send or receive, after another of the same call has failed: it may or may not have been done, has no
  /// number any more, and its memory is not touched any more. Waits for nobody. Where a send cannot be taken back, the
  /// connection is: the PE is lost then.
  virtual void cancel(std::uint64_t request) = 0;

  /// Sleeps until there may be something to do, at most so long.
  virtual void nap(std::chrono::nanoseconds longest) = 0;
  /// Ends the nap of another thread.
  virtual void wake() = 0;
  /// The first PE that was found to be lost, and how.
  [[nodiscard]] virtual std::optional<Error> lost() const = 0;
  /// "ucx 1.13 (tcp)", for SHMEM_INFO.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Collective over the world, which outlives the network: each PE makes its end, and they tell each other its address
/// and the keys of its segments. All succeed or all get an Error: that of the first PE that could not, with its name.
/// An Error too where libshmem was built without UCX, or the library is not there.
Result<std::unique_ptr<Network>> make_network(Bootstrap& world, NetworkSettings settings);

}  // namespace shmem
