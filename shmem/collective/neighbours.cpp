// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/neighbours.hpp"

namespace shmem::by_neighbours {
namespace {

/// The leader puts what its group gives where it belongs in `dest`.
bool gather_group(const Members& members, const NeighbourGroups& groups, std::byte* dest, const void* source,
                  std::size_t size) {
  EagerChannel& eager = *members.eager;
  bool ok = eager.begin() && eager.give(source, size);
  for (int member = groups.first; ok && groups.leads && member < groups.end; ++member) {
    const auto given = eager.take(member);
    ok = static_cast<bool>(given);
    if (ok) {
      copy_small(dest + static_cast<std::size_t>(member) * size, given.data, size);
    }
  }
  if (ok) {
    eager.end(EagerChannel::Begun::kUnknown);
  }
  return ok;
}

/// All leaders give what their groups gave. Each member begins with its own group's, so that not all read the same
/// leader's at once.
bool take_groups(const Members& members, const NeighbourGroups& groups, std::byte* dest, std::size_t size) {
  EagerChannel& eager = *members.eager;
  const auto offset = [size](int member) { return static_cast<std::size_t>(member) * size; };
  bool ok =
      eager.begin() && eager.give(dest + offset(groups.first), groups.leads ? offset(groups.end - groups.first) : 0);
  int leader = groups.first;
  for (int left = (groups.members + groups.size - 1) / groups.size; ok && left > 0; --left) {
    const auto given = eager.take(leader);
    ok = static_cast<bool>(given);
    if (ok && leader != members.me) {
      copy_small(dest + offset(leader), given.data, given.size);
    }
    leader = groups.end_of(leader) == groups.members ? 0 : leader + groups.size;
  }
  if (ok) {
    // A leader gives in this call what its whole group has given in the last one.
    eager.end(EagerChannel::Begun::kLast);
  }
  return ok;
}

}  // namespace

Result<void> fcollect(const Members& members, std::byte* dest, const void* source, std::size_t size) {
  const NeighbourGroups groups(members);
  if (!gather_group(members, groups, dest, source, size) || !take_groups(members, groups, dest, size)) {
    return members.eager->error();
  }
  return {};
}

}  // namespace shmem::by_neighbours
