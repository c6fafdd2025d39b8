// SPDX-License-Identifier: Apache-2.0
// The other PEs as UCX reaches them: endpoints made on first use, keys of their memory, whether they are lost. And the
// interface of one-sided operations on their memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "shmem/net/address_exchange.hpp"
#include "shmem/net/network.hpp"
#include "shmem/net/ucx/names.hpp"

namespace shmem {

class UcxPeers;

struct UcxPeer {
  int pe = 0;
  UcxPeers* all = nullptr;
  // Guarded by UcxPeers::lock(); constant once the endpoint exists.
  ucp_ep_h endpoint = nullptr;
  std::array<ucp_rkey_h, kSegments> keys{};
  std::vector<ucp_rkey_h> registered_keys{};  // by slot; guarded, and made on first use
  // Guarded likewise. Operations begun on it, and how many of them are known to be complete.
  std::uint64_t begun = 0;
  std::uint64_t flushed = 0;
  std::uint16_t requests = 0;  // Request::sequence of the next one to it
  bool closed = false;
  void* closing = nullptr;  // UCX's request, at the end of all
  /// Why it is lost, or nullptr. The text is never freed. Written by UCX's callback in any thread that makes progress.
  std::atomic<const char*> lost{nullptr};
};

/// An operation, for messages: "put 64 bytes to".
struct OpText {
  const char* verb = "";
  std::size_t bytes = 0;
  const char* preposition = "to";
};

class UcxPeers {
 public:
  /// The worker outlives this.
  UcxPeers(UcxWorker& worker, std::vector<PeAddress> addresses, const NetworkSettings& settings, int me);
  UcxPeers(const UcxPeers&) = delete;
  UcxPeers& operator=(const UcxPeers&) = delete;
  /// Closes all endpoints; waits a little for operations under way.
  ~UcxPeers();

  /// Guards the peers. Not held during a wait.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  /// The peer, connected; an Error if it is lost. REQUIRES: lock().
  Result<UcxPeer*> reach(int pe, const OpText& op);
  [[nodiscard]] UcxPeer& at(int pe) { return peers_[static_cast<std::size_t>(pe)]; }
  /// An Error unless `bytes` at `place` lie in that PE's segment.
  Result<void> check(const RemotePlace& place, std::size_t bytes) const;
  /// REQUIRES: check() has found it.
  [[nodiscard]] std::uint64_t address(const RemotePlace& place) const {
    return segment_of(place)->address + place.offset;
  }
  /// The key of the segment; nullptr: it has none. REQUIRES: lock(), check().
  Result<ucp_rkey_h> key(UcxPeer& peer, const RemotePlace& place, const OpText& op);
  /// As Network::attach_segment, and the end of that. By one thread at a time.
  void attach(Segment segment, std::vector<SegmentAddress> places);
  void detach(Segment segment);
  /// Peers with an endpoint. REQUIRES: lock().
  [[nodiscard]] const std::vector<UcxPeer*>& connected() const { return connected_; }

  /// Closes the connection: operations under way end in the next calls of the worker's progress.
  void give_up(UcxPeer& peer);
  void note_lost(UcxPeer& peer, const char* why);
  void note_lost(int pe, const char* why) { note_lost(peers_[static_cast<std::size_t>(pe)], why); }
  void note_failure(UcxPeer& peer, ucs_status_t status);
  [[nodiscard]] Error lost_error(const UcxPeer& peer, const OpText& op) const;
  /// The Error of one UCX call; lost_error() if the peer is lost.
  [[nodiscard]] Error error(const UcxPeer& peer, ucs_status_t status, const OpText& op) const;
  [[nodiscard]] bool has_lost(int pe) const {
    return peers_[static_cast<std::size_t>(pe)].lost.load(std::memory_order_acquire) != nullptr;
  }
  /// False: no quiet() waits for it. REQUIRES: lock().
  [[nodiscard]] static bool has_begun(const UcxPeer& peer) { return peer.flushed != peer.begun; }
  /// No later quiet() waits for what was begun. REQUIRES: lock().
  static void forget(UcxPeer& peer) { peer.flushed = peer.begun; }
  [[nodiscard]] std::optional<Error> first_lost() const;

  /// "put 64 bytes to PE 3 (on kiwi)".
  [[nodiscard]] std::string text_of(const UcxPeer& peer, const OpText& op) const;
  [[nodiscard]] const std::string& name(int pe) const { return names_[static_cast<std::size_t>(pe)]; }
  [[nodiscard]] const std::string& my_name() const { return name(me_); }

 private:
  using Places = std::vector<SegmentAddress>;
  static std::size_t slot_of(Segment segment) { return static_cast<std::size_t>(segment) - kSegments; }
  /// nullptr: that PE has no such segment.
  [[nodiscard]] const SegmentAddress* segment_of(const RemotePlace& place) const;
  [[nodiscard]] std::string attempt(const UcxPeer& peer, const OpText& op) const;
  ucs_status_t connect(UcxPeer& peer);
  void* close(UcxPeer& peer, bool force);

  UcxWorker& worker_;
  const std::vector<PeAddress> addresses_;
  const std::vector<bool> is_remote_;
  const std::vector<std::string> names_;
  const int me_;
  // Acquire and release: a thread that finds the segment reads its places.
  std::array<std::atomic<const Places*>, kMostRegistered> registered_{};
  std::mutex mutex_;
  std::vector<UcxPeer> peers_;
  std::vector<UcxPeer*> connected_;
  std::atomic<const UcxPeer*> first_lost_{nullptr};
};

/// The one-sided operations of Network. With Waits::kYes the caller has its bytes back when a put or get returns.
class UcxOneSided {
 public:
  enum class Waits { kNo, kYes };

  UcxOneSided() = default;
  UcxOneSided(const UcxOneSided&) = delete;
  UcxOneSided& operator=(const UcxOneSided&) = delete;
  virtual ~UcxOneSided() = default;

  virtual Result<void> put(const RemotePlace& to, const void* from, std::size_t bytes, Waits waits) = 0;
  virtual Result<void> get(void* to, const RemotePlace& from, std::size_t bytes, Waits waits) = 0;
  // REQUIRES: a word of 4 or 8 bytes in the PE's segment; post_atomic: an operation that is useful without its answer.
  virtual Result<std::uint64_t> fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                             std::uint64_t operand, std::uint64_t compared) = 0;
  virtual Result<void> post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                   std::uint64_t operand) = 0;
  virtual Result<void> fence(PeChoice pes) = 0;
  virtual Result<void> quiet(PeChoice pes) = 0;
  /// Afterwards no operation that was started on this PE touches local memory.
  virtual void stop(UcxPeer& peer) = 0;

 protected:
  static constexpr OpText kQuieting{"complete its operations on", 0, ""};
  static constexpr OpText kChanging{"change a word of", 0, ""};

  /// Completes what was begun on these peers: first begin(peer), which gives a Result of something to wait
  /// for, under the lock, then finish(peer, that something) for each. Returns the first Error.
  template <typename Begin, typename Finish>
  static Result<void> flush_peers(UcxPeers& peers, PeChoice pes, Begin begin, Finish finish);
};

template <typename Begin, typename Finish>
Result<void> UcxOneSided::flush_peers(UcxPeers& peers, PeChoice pes, Begin begin, Finish finish) {
  using Begun = std::invoke_result_t<Begin, UcxPeer&>;
  struct Flush {
    UcxPeer& peer;
    typename Begun::value_type request;
    std::uint64_t begun;
  };
  std::vector<Flush> flushes;
  Result<void> result;
  auto held = peers.lock();
  for (UcxPeer* peer : peers.connected()) {
    if (!UcxPeers::has_begun(*peer) || !pes.contains(peer->pe)) {
      continue;
    }
    const bool lost = peer->lost.load(std::memory_order_acquire) != nullptr;
    const auto request = lost ? Begun(peers.lost_error(*peer, kQuieting)) : begin(*peer);
    if (request) {
      flushes.push_back({*peer, *request, peer->begun});
    } else if (result) {
      result = request.error();
    }
  }
  held.unlock();
  for (const Flush& flush : flushes) {
    auto done = finish(flush.peer, flush.request);
    if (done) {
      held.lock();
      flush.peer.flushed = std::max(flush.peer.flushed, flush.begun);
      held.unlock();
    } else if (result) {
      result = std::move(done);
    }
  }
  return result;
}

}  // namespace shmem
