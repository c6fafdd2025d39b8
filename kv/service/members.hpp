// SPDX-License-Identifier: Apache-2.0
// The other members of an exchange: a thread connects to those that there are, welcomes those that come, and notices
// the end of each.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/disposal.hpp"
#include "kv/service/channel.hpp"
#include "kv/service/counters.hpp"
#include "kv/service/leases.hpp"
#include "kv/service/memory.hpp"
#include "kv/service/peer.hpp"
#include "shmem/bootstrap/helper_thread.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// What a member tells each reader.
struct Self {
  std::uint64_t id = 0;
  int directory = -1;  // its file
  std::uint32_t slots = 0;
  std::uint32_t quota = 0;
  std::uint32_t lease_ms = 0;
};

using PeerList = std::vector<std::shared_ptr<Peer>>;
/// A list that does not change any more: readers look through it without a lock.
using Peers = std::shared_ptr<const PeerList>;

/// The one on this seat, or null.
inline Peer* find_peer(const Peers& peers, std::uint32_t seat) {
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
  static Result<std::unique_ptr<Members>> open(const std::string& exchange, const Self& self,
                                               std::chrono::milliseconds limit, Counters& counters);
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members();

  [[nodiscard]] std::uint32_t seat() const { return listener_.seat(); }
  [[nodiscard]] std::size_t reader_count() const;

  // As the owner of blocks.
  /// Readers, also later ones, get the file, which this owns from now on.
  void add_region(std::uint32_t region, base::UniqueFd file, const Range& range);
  void remove_region(std::uint32_t region);
  struct Region {
    base::UniqueFd file;
    Range range;
  };
  /// Duplicates of the files.
  [[nodiscard]] std::map<std::uint32_t, Region> regions() const;
  /// A reader has a lease of this slot.
  [[nodiscard]] bool is_leased(std::uint32_t slot, std::uint32_t now) const;

  // As a reader.
  /// Those that there are at the moment, by seat.
  [[nodiscard]] Peers peers() const {
    const std::lock_guard lock(peers_mutex_);
    return peers_;
  }

 private:
  /// A member that reads from this one; until it has said hello, nothing but a connection.
  struct Reader {
    Channel channel;
    std::unique_ptr<LeaseBoard> board;
  };
  class Events;

  Members(std::string exchange, const Self& self, Listener listener, base::UniqueFd wake, Counters& counters);
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
  void accept();
  bool make_room();
  bool answer(Reader& reader);
  bool welcome(Reader& reader);
  void end(Channel channel) noexcept;
  void end(Offer offer) noexcept;
  void end(std::unique_ptr<Reader> reader) noexcept;
  bool send_region(Reader& reader, std::uint32_t number, const Region& region);
  void set_peer(std::uint32_t seat, std::shared_ptr<Peer> peer);
  void note_refusal(std::errc error, pid_t pid, std::optional<std::uint32_t> seat);
  [[nodiscard]] Message message(Kind kind, std::uint32_t number) const;

  const std::string exchange_;
  const Self self_;
  Listener listener_;
  base::UniqueFd wake_;
  Counters& counters_;
  std::atomic<bool> stop_{false};

  mutable std::mutex readers_mutex_;  // for the two below
  std::vector<std::unique_ptr<Reader>> readers_;
  std::map<std::uint32_t, Region> regions_;

  Disposal disposal_;               // has what members have sent; before all that has peers
  mutable std::mutex peers_mutex_;  // for the next
  Peers peers_ = std::make_shared<const PeerList>();

  std::mutex joined_mutex_;
  std::condition_variable joined_changed_;
  bool joined_ = false;

  // Only the thread uses these.
  std::array<std::shared_ptr<Peer>, kMostMembers> by_seat_;
  std::vector<Offer> pending_;  // of members that have not sent all of it yet
  using Seats = std::array<bool, kMostMembers>;
  Seats wanted_{};  // to connect to now
  Seats later_{};   // to try again at `retry_`
  std::chrono::steady_clock::time_point retry_;
  bool pause_ = false;         // accept no one for a while
  bool starved_ = false;       // take no descriptors for a while
  std::set<pid_t> warned_of_;  // members with another version of libshmem

  HelperThread thread_;  // last: it uses the others
};

}  // namespace shmem::exchange
