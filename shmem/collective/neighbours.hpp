// SPDX-License-Identifier: Apache-2.0
// Small data of many members in two calls of the eager channel: the first member of each group of neighbours, its
// leader, takes what the members of its group give, and gives that. A member reads about sqrt(n) lines that other
// processors have just written, instead of n.
#pragma once

#include <algorithm>

#include "shmem/collective/members.hpp"

namespace shmem {

/// With more members than this, small data takes two steps.
constexpr int kMostOneStep = 32;

/// The groups of a team, of about sqrt(n) members each, seen from one member.
struct NeighbourGroups {
  explicit NeighbourGroups(const Members& team) : members(team.size()) {
    while (size * size < members) {
      ++size;
    }
    first = team.me / size * size;
    end = end_of(first);
    leads = team.me == first;
  }

  [[nodiscard]] int end_of(int leader) const { return std::min(leader + size, members); }

  int members;
  int size = 1;
  int first = 0, end = 0;  // of this member's group
  bool leads = false;
};

namespace by_neighbours {

/// Whether fcollect() can be used; the same on all members. REQUIRES: eager.
inline bool takes_fcollect(const Members& members, std::size_t size) {
  return members.size() > kMostOneStep && size * static_cast<std::size_t>(NeighbourGroups(members).size) <= kEagerLimit;
}
Result<void> fcollect(const Members& members, std::byte* dest, const void* source, std::size_t size);

}  // namespace by_neighbours

}  // namespace shmem
