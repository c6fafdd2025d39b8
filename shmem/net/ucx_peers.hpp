// SPDX-License-Identifier: Apache-2.0
// The other PEs as UCX reaches them: endpoints made on first use, keys of their memory, and whether they are lost.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shmem/net/greeting.hpp"
#include "shmem/net/network.hpp"
#include "shmem/net/ucx_worker.hpp"

namespace shmem {

class UcxPeers;

struct UcxPeer {
  int pe = 0;
  UcxPeers* all = nullptr;
  // Guarded by UcxPeers::lock(), and constant once there is an endpoint.
  ucp_ep_h endpoint = nullptr;
  std::array<ucp_rkey_h, kSegments> keys{};
  // Guarded likewise. What was begun towards it, and up to where that is known to be done.
  std::uint64_t begun = 0;
  std::uint64_t flushed = 0;
  bool closed = false;
  /// Why; nullptr: it is not lost. A text that is never freed. Written by UCX's callback in any thread that progresses.
  std::atomic<const char*> lost{nullptr};
};

/// What was to be done, for messages: "put 64 bytes to".
struct Doing {
  const char* verb = "";
  std::size_t bytes = 0;
  const char* preposition = "to";
};

class UcxPeers {
 public:
  /// The worker outlives this.
  UcxPeers(UcxWorker& worker, std::vector<Greeting> greetings, const NetworkSettings& settings, int me);
  UcxPeers(const UcxPeers&) = delete;
  UcxPeers& operator=(const UcxPeers&) = delete;
  /// Closes what is open; waits a little for what was begun.
  ~UcxPeers();

  /// Against a change of the peers; nothing where one thread calls only. Not held while anything is waited for.
  [[nodiscard]] std::unique_lock<std::mutex> lock();

  /// With an endpoint, and not lost. REQUIRES: lock().
  Result<UcxPeer*> reach(int pe, const Doing& doing);
  /// `bytes` at `place` lie in that PE's segment.
  Result<void> check(const FarPlace& place, std::size_t bytes) const;
  [[nodiscard]] std::uint64_t address(const FarPlace& place) const {
    return greetings_[static_cast<std::size_t>(place.pe)].segments[static_cast<std::size_t>(place.segment)].address +
           place.offset;
  }
  /// Those with an endpoint. REQUIRES: lock().
  [[nodiscard]] const std::vector<UcxPeer*>& connected() const { return connected_; }

  /// Nothing comes from it or goes to it any more: what is under way ends in the next calls of the worker's progress.
  void give_up(UcxPeer& peer);
  void note_lost(UcxPeer& peer, const char* why);
  void note_lost(int pe, const char* why) { note_lost(peers_[static_cast<std::size_t>(pe)], why); }
  void note_failure(UcxPeer& peer, ucs_status_t status);
  [[nodiscard]] tl::unexpected<Error> lost_error(const UcxPeer& peer, const Doing& doing) const;
  /// What UCX said of one call; lost_error() if the peer is lost.
  [[nodiscard]] tl::unexpected<Error> error(const UcxPeer& peer, ucs_status_t status, const Doing& doing) const;
  [[nodiscard]] std::optional<Error> first_lost() const;

  /// "put 64 bytes to PE 3 (on kiwi)".
  [[nodiscard]] std::string text_of(const UcxPeer& peer, const Doing& doing) const;
  [[nodiscard]] const std::string& name(int pe) const { return names_[static_cast<std::size_t>(pe)]; }
  [[nodiscard]] const std::string& my_name() const { return name(me_); }

 private:
  [[nodiscard]] std::string attempt(const UcxPeer& peer, const Doing& doing) const;
  ucs_status_t connect(UcxPeer& peer);
  void* close(UcxPeer& peer, bool force);

  UcxWorker& worker_;
  const std::vector<Greeting> greetings_;
  const std::vector<bool> is_far_;
  const std::vector<std::string> names_;
  const int me_;
  const bool threads_;
  std::mutex mutex_;
  std::vector<UcxPeer> peers_;
  std::vector<UcxPeer*> connected_;
  std::atomic<const UcxPeer*> first_lost_{nullptr};
};

}  // namespace shmem
