// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/multi_leader.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "shmem/team/spanning_team.hpp"

namespace shmem::multi_leader {
namespace {

constexpr std::size_t kLeast = std::size_t{32} << 10;

/// The member of the team at a place on this node.
int member_here(const Members& members, int place) {
  return *members.map.member(members.job.nodes.world(members.here->pe(place)));
}

int my_place(const Members& members) {
  return *members.here->member(members.job.me);
}

/// Each member of the node has a share in `dest`: this one copies them to `to`, but for its own if that is `dest`, too,
/// and all synchronise. `to` may be missing.
Result<void> take_shares(const Members& members, std::byte* dest, std::byte* to, std::size_t size) {
  if (to != nullptr) {
    const auto copy = [&](int place, const Share& share) {
      copy_cached(to + share.begin, members.at(dest, member_here(members, place)) + share.begin, share.size);
    };
    fetch_shares(my_place(members), members.here->size, size, copy, to == dest ? 1 : 0);
  }
  return members.spanning->sync_results_here();
}

/// Combines a share from all members of the node, in their order. This member's `source` may be elsewhere.
void combine_here(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                  const Share& share, const std::byte* own) {
  const int mine = my_place(members);
  combine_parts(
      reduction, share, members.here->size,
      [&](int place, std::size_t at, std::size_t) {
        return (place == mine ? own : members.at(source, member_here(members, place))) + at;
      },
      [&](std::size_t at, const std::byte* sums, std::size_t part) { copy_cached(dest + at, sums, part); });
}

/// The sum of the nodes' blocks, in their order.
void combine_nodes(const Reduction& reduction, std::span<const std::span<std::byte>> blocks, std::byte* to) {
  copy_cached(to, blocks[0].data(), blocks[0].size());
  for (const auto& block : blocks.subspan(1)) {
    reduction.combine(to, block.data(), block.size() / reduction.element);
  }
}

}  // namespace

bool pays(const Members& members, std::size_t bytes) {
  return bytes >= kLeast && members.here->size > 1 && members.spanning->rail() != nullptr;
}

Result<void> broadcast(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                       int root_node, std::byte* to) {
  SpanningTeam& team = *members.spanning;
  ProcessGroup& rail = *members.spanning->rail();
  const Share share = share_of(my_place(members), members.here->size, size);
  if (root_node != members.spanning->my_node()) {
    if (auto ok = team.sync_results_here(rail.broadcast(dest + share.begin, share.size, root_node)); !ok) {
      return ok;
    }
    return take_shares(members, dest, to, size);
  }
  if (auto ok = team.sync_results_here(); !ok) {
    return ok;
  }
  std::byte* const given = members.at(source, root);
  const auto sent = rail.broadcast(given + share.begin, share.size, root_node);  // which reads it only, at its root
  if (to != nullptr) {
    move_cached(to, given, size);
  }
  return team.sync_results_here(sent);
}

Share share_here(const Members& members, std::size_t size) {
  return share_of(my_place(members), members.here->size, size);
}

Result<void> reduce(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                    std::size_t count, const OwnBuffers* own) {
  SpanningTeam& team = *members.spanning;
  if (auto ok = team.sync_results_here(); !ok) {
    return ok;
  }
  const std::size_t size = count * reduction.element;
  const Share share = share_here(members, size);
  combine_here(members, reduction, dest, source, share,
               own != nullptr ? own->from : static_cast<const std::byte*>(source));
  const auto done = members.spanning->rail()->allreduce(dest + share.begin, share.size / reduction.element, reduction);
  if (auto ok = team.sync_results_here(done); !ok) {
    return ok;
  }
  return take_shares(members, dest, own != nullptr ? own->to : dest, size);
}

bool scatters(const Members& members, std::size_t bytes) {
  return members.spanning->rail() != nullptr && (bytes >= kLeast || members.spanning->nodes() == 2);
}

bool is_at_my_place(const Members& members, int member) {
  const auto& of_node = members.spanning->by_node()[static_cast<std::size_t>(members.spanning->node_of(member))];
  return of_node[static_cast<std::size_t>(my_place(members))] == member;
}

Result<void> reduce_scatter(const Members& members, const Reduction& reduction, std::byte* stage, std::size_t size,
                            std::span<const std::byte* const> own, std::byte* to) {
  SpanningTeam& team = *members.spanning;
  const int here = members.here->size;
  const int place = my_place(members);
  const auto nodes = static_cast<std::size_t>(team.nodes());
  const auto block = [&](std::size_t node, int at) {
    return stage + static_cast<std::size_t>(team.by_node()[node][static_cast<std::size_t>(at)]) * size;
  };
  if (auto ok = team.sync_results_here(); !ok) {
    return ok;
  }
  std::vector<std::span<const std::byte>> sums(nodes);
  std::vector<std::span<std::byte>> theirs(nodes);
  const auto mine = static_cast<std::size_t>(team.my_node());
  for (std::size_t node = 0; node < nodes; ++node) {
    std::byte* const sum = block(node, place);
    const std::byte* const given = own[static_cast<std::size_t>(sum - stage) / size];
    if (here > 1 || node == mine) {
      combine_here(members, reduction, sum, sum, {0, size}, given);
    }
    if (node != mine) {
      sums[node] = {here > 1 ? sum : given, size};
      theirs[node] = {block(node, (place + 1) % here), size};  // which the members of this node read until the sync
    }
  }
  if (auto ok = team.sync_results_here(); !ok) {
    return ok;
  }
  const auto done = team.rail()->alltoall(sums, theirs);
  if (auto ok = team.sync_results_here(done); !ok) {
    return ok;
  }
  theirs[mine] = {block(mine, place), size};
  combine_nodes(reduction, theirs, to);
  return {};
}

Result<void> alltoall(const Members& members, void* dest, const void* source, std::size_t block) {
  SpanningTeam& team = *members.spanning;
  if (auto ok = team.sync_results_here(); !ok) {
    return ok;
  }
  auto* const to = static_cast<std::byte*>(dest);
  const auto* const from = static_cast<const std::byte*>(source);
  const auto number = static_cast<std::size_t>(members.size());
  std::vector<std::span<const std::byte>> out(number);
  std::vector<std::span<std::byte>> in(number);
  for (std::size_t i = 0; i < number; ++i) {
    if (team.node_of(static_cast<int>(i)) == team.my_node()) {
      continue;
    }
    out[i] = {from + i * block, block};
    in[i] = {to + i * block, block};
  }
  const std::size_t mine = static_cast<std::size_t>(members.me) * block;
  to_the_right(my_place(members), block != 0 ? members.here->size : 0, 0, [&](int place) {
    const int member = member_here(members, place);
    copy_cached(to + static_cast<std::size_t>(member) * block, members.at(source, member) + mine, block);
  });
  return team.sync_results_here(members.spanning->everybody().alltoall(out, in));
}

}  // namespace shmem::multi_leader
