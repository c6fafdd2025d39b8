// SPDX-License-Identifier: Apache-2.0
// The other members of an exchange: a thread connects to those that there are, welcomes those that come, and notices
// the end of each.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/disposal.hpp"
#include "base/helper_thread.hpp"
#include "kv/exchange/channel.hpp"
#include "kv/exchange/counters.hpp"
#include "kv/exchange/local_peer.hpp"
#include "kv/exchange/readers.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

using PeerList = std::vector<std::shared_ptr<LocalPeer>>;
/// A list that does not change any more: readers look through it without a lock.
using Peers = std::shared_ptr<const PeerList>;

/// The one on this seat, or null.
inline LocalPeer* find_peer(const Peers& peers, std::uint32_t seat) {
  for (const auto& peer : *peers) {
    if (peer->seat() == seat && peer->is_alive()) {
      return peer.get();
    }
  }
  return nullptr;
}

/// Thread-safe.
class Members {
 public:
  /// Takes a seat and looks for the others, for at most `limit` if some do not answer. `counters` outlives this.
  static Result<std::unique_ptr<Members>> open(const MeetingPlace& place, const Self& self,
                                               std::chrono::milliseconds limit, Counters& counters);
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members();

  [[nodiscard]] std::uint32_t seat() const { return own_seat_.number; }
  /// The members that read from this one.
  [[nodiscard]] Readers& readers() { return readers_; }
  [[nodiscard]] const Readers& readers() const { return readers_; }
  /// Those that there are at the moment, by seat.
  [[nodiscard]] Peers peers() const {
    const std::lock_guard lock(peers_mutex_);
    return peers_;
  }

 private:
  class Events;

  Members(MeetingPlace place, const Self& self, SeatSocket seat, base::UniqueFd wake, Counters& counters);
  void run();
  void turn();
  void tell_joined();
  void attach(std::uint32_t seat);
  bool try_to_attach(std::uint32_t seat);
  void attach_later(std::uint32_t seat) noexcept;
  void attach_waiting();
  void read_peers(const Events& events);
  enum class Answer { kNone, kComplete, kRefused };
  Answer receive_answer(Offer& offer);
  bool attach_to(Offer& offer);
  void read_pending(const Events& events);
  void read_readers(const Events& events);
  void end(Channel channel) noexcept;
  void end(Offer offer) noexcept;
  void set_peer(std::uint32_t seat, std::shared_ptr<LocalPeer> peer);
  void note_refusal(std::errc error, pid_t pid, std::optional<std::uint32_t> seat);

  const MeetingPlace place_;
  const Self self_;
  SeatSocket own_seat_;
  base::UniqueFd wake_;
  Counters& counters_;
  std::atomic<bool> stop_{false};

  Disposal disposal_;  // has what members have sent; before all that has peers or readers
  Readers readers_;
  mutable std::mutex peers_mutex_;  // for the next
  Peers peers_ = std::make_shared<const PeerList>();

  std::mutex joined_mutex_;
  std::condition_variable joined_changed_;
  bool joined_ = false;

  // Only the thread uses these.
  std::array<std::shared_ptr<LocalPeer>, kMostMembers> by_seat_;
  std::vector<Offer> pending_;  // of members that have not sent all of it yet
  using Seats = std::array<bool, kMostMembers>;
  Seats wanted_{};  // to connect to now
  Seats later_{};   // to try again at `retry_`
  std::chrono::steady_clock::time_point retry_;
  bool starved_ = false;       // take no descriptors for a while
  std::set<pid_t> warned_of_;  // members with another version of libshmem

  base::HelperThread thread_;  // last: it uses the others
};

}  // namespace shmem::exchange
