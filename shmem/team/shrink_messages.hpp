// SPDX-License-Identifier: Apache-2.0
// The messages of one step of a shrink: one from each member to each other one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shmem/layout/sync_view.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

/// All have the same number of words. Waits for nothing. Used by one thread at a time.
class ShrinkMessages {
 public:
  ShrinkMessages(Network& network, const TeamMap& world, std::uint64_t tag, std::size_t words);
  ShrinkMessages(const ShrinkMessages&) = delete;
  ShrinkMessages& operator=(const ShrinkMessages&) = delete;
  /// Withdraws what is under way.
  ~ShrinkMessages();

  /// Once for each other member.
  void expect(int member);
  /// `mine()` does not change any more.
  void send(int member);
  [[nodiscard]] std::vector<std::uint64_t>& mine() { return mine_; }

  /// Notes what has come, and which members are lost.
  void look();
  [[nodiscard]] bool has_come(int member) const { return peers_[index(member)].has_come; }
  [[nodiscard]] bool is_lost(int member) const { return peers_[index(member)].is_lost; }
  /// A member whose message has come.
  [[nodiscard]] std::optional<int> first_that_has_come() const;
  /// What send() has begun is still under way.
  [[nodiscard]] bool is_sending(int member) const { return peers_[index(member)].outgoing.has_value(); }
  /// REQUIRES: has_come().
  [[nodiscard]] const std::vector<std::uint64_t>& from(int member) const { return peers_[index(member)].theirs; }
  /// No more is expected.
  void stop_expecting();

 private:
  struct Peer {
    std::vector<std::uint64_t> theirs;
    std::optional<std::uint64_t> incoming, outgoing;  // requests of the network
    bool has_come = false;
    bool is_lost = false;
  };
  static std::size_t index(int member) { return static_cast<std::size_t>(member); }
  /// True: it is done, and the request is over. A failure says that the member is lost.
  bool is_over(Peer& peer, std::optional<std::uint64_t>& request);

  Network& network_;
  const TeamMap& world_;
  const std::uint64_t tag_;
  std::vector<std::uint64_t> mine_;
  std::vector<Peer> peers_;  // by member
};

}  // namespace shmem
