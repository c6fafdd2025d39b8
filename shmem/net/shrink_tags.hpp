// SPDX-License-Identifier: Apache-2.0
// The tags of messages by which the members of a team on several nodes agree on those that are left
// (team/spanning_survivors.hpp). The first of them ends the waits of the members that do not know yet.
#pragma once

#include <cstdint>
#include <optional>

#include "shmem/net/network.hpp"

namespace shmem {

/// What a member sends once in each shrink, to every other one. kFailure: before the first shrink, to the other nodes,
/// when a call on the team has failed.
enum class ShrinkStep : std::uint8_t { kBegun, kProposal, kFailure };

// A tag is the id of a ProcessGroup, a bit for barriers in two phases, and 15 bits of a number. Ids of groups are those
// of teams, below 2^30, and two bits (team/spanning_team.cpp). With both bits it is a group of the device, which makes
// no barriers in two phases: these tags are free.
namespace shrink_tags {
constexpr std::uint64_t kTeam = (std::uint64_t{1} << 30) - 1;
constexpr std::uint64_t kGroupBits = std::uint64_t{3} << 30;
constexpr std::uint64_t kActiveSets = std::uint64_t{1} << 30;
constexpr std::uint64_t kSplit = 1 << 15;
constexpr std::uint64_t kProposal = 1 << 14;
constexpr std::uint64_t kFailure = 1 << 13;
}  // namespace shrink_tags

/// `team`: the id of the team, below 2^30. `number`: of the shrink of this team.
constexpr std::uint64_t shrink_tag(std::uint32_t team, std::uint64_t number, ShrinkStep step) {
  using namespace shrink_tags;
  const std::uint64_t bits = step == ShrinkStep::kProposal ? kProposal : step == ShrinkStep::kFailure ? kFailure : 0;
  return (team | kGroupBits) << 16 | kSplit | bits | number % kFailure;
}

/// The messages that say that a member of this team has begun to shrink it.
constexpr TagPattern shrink_begun(std::uint32_t team) {
  using namespace shrink_tags;
  return {shrink_tag(team, 0, ShrinkStep::kBegun), (kTeam | kGroupBits) << 16 | kSplit | kProposal | kFailure};
}

/// The same, or that a call of a member on this team has failed.
constexpr TagPattern team_given_up(std::uint32_t team) {
  using namespace shrink_tags;
  return {shrink_tag(team, 0, ShrinkStep::kBegun), (kTeam | kGroupBits) << 16 | kSplit | kProposal};
}

/// NetworkSettings::interrupts: the waits of a team's groups end when a call of another member has failed, or it has
/// begun to shrink the team.
constexpr std::optional<TagPattern> interrupted_by_shrink(std::uint64_t tag) {
  using namespace shrink_tags;
  const std::uint64_t group = tag >> 16;
  const bool of_shrink = (group & kGroupBits) == kGroupBits && (tag & kSplit) != 0;
  if (of_shrink || (group & kGroupBits) == kActiveSets) {
    return std::nullopt;
  }
  return team_given_up(static_cast<std::uint32_t>(group & kTeam));
}

}  // namespace shmem
