// SPDX-License-Identifier: Apache-2.0
// Messages by which a member of a group on several nodes tells the others that it has given the group up, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shmem/net/network.hpp"

namespace shmem {

/// The tags of messages in a group, of which these are set apart from those of collective calls: a ProcessGroup's have
/// the id of the group's team (spanning_team.hpp) in these bits, which is that small.
namespace group_tags {
constexpr std::uint32_t kTeam = 1;
constexpr std::uint64_t kMail = std::uint64_t{1} << 45;    // between two members (network_mail.hpp)
constexpr std::uint64_t kNotice = std::uint64_t{1} << 44;  // alone
}  // namespace group_tags

/// One member's end. Thread-safe. A member that has given up closes its connections, but UCX 1.13 tells another member
/// of that only when it sends: one that waits would find out at the next keepalive, after up to 20 s.
class Notices {
 public:
  /// `network` outlives this, and was made with interrupts().
  Notices(Network& network, int me, int members)
      : network_(network), me_(me), gone_(static_cast<std::size_t>(members), false) {
    requests_.reserve(static_cast<std::size_t>(members));
  }

  /// NetworkSettings::interrupts for a group: a notice of any member ends the waits of collective calls.
  static std::optional<TagPattern> interrupts(std::uint64_t tag);

  /// To all members that are not lost, the first time. Waits for a moment at most. `error`: that of this member's call,
  /// if no member has told it of another one.
  void send(const Error& error);
  /// A member has given the group up.
  [[nodiscard]] bool has_come();
  [[nodiscard]] bool has_come(int member);
  /// Members give up one after the other, and each closes its connections: what failed first is the cause of `error`,
  /// which names `member`.
  [[nodiscard]] Error cause_of(const Error& error, std::optional<int> member = {});

 private:
  // Under mutex_.
  void take();
  [[nodiscard]] std::optional<std::string> receive(int member);

  Network& network_;
  const int me_;
  std::mutex mutex_;
  std::vector<bool> gone_;  // members that have given up
  int first_ = -1;          // of them
  std::string why_;         // the first one did so; cut after 500 bytes
  bool sent_ = false;
  std::vector<std::uint64_t> requests_;  // of send(), with room for all members: it may be short of memory
};

}  // namespace shmem
