// SPDX-License-Identifier: Apache-2.0
// Messages by which a member of a group on several nodes tells the others that it has given the group up, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "shmem/net/network.hpp"

namespace shmem {

/// The tags of messages in a group, of which these are set apart from those of collective calls.
namespace group_tags {
constexpr std::uint64_t kMail = std::uint64_t{1} << 47;  // between two members (network_mail.hpp)
constexpr std::uint64_t kNotice = std::uint64_t{1} << 46;
}  // namespace group_tags

/// One member's end. A member that has given up closes its connections, but UCX 1.13 tells another member of that only
/// when it sends: one that waits would find out at the next keepalive, after up to 20 s.
class Notices {
 public:
  struct Notice {
    int from;
    std::string why;
  };

  /// `network` outlives this, and was made with interrupts().
  Notices(Network& network, int me, int members) : network_(network), me_(me), members_(members) {}

  /// NetworkSettings::interrupts for a group: a notice of any member ends the waits of collective calls.
  static std::optional<TagPattern> interrupts(std::uint64_t tag);

  /// To all members that are not lost. Waits for a moment at most. `why`: cut after 500 bytes.
  void send(const std::string& why);
  /// A notice that was not taken.
  [[nodiscard]] bool has_come() const;
  [[nodiscard]] bool has_come(int from) const;
  /// All that have come. Returns one of them.
  std::optional<Notice> take();

 private:
  [[nodiscard]] std::optional<Notice> receive(int from);

  Network& network_;
  const int me_;
  const int members_;
};

}  // namespace shmem
