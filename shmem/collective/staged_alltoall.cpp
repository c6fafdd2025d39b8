// SPDX-License-Identifier: Apache-2.0
// An alltoall by way of the stages: blocks of any size from each member to each other one.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "shmem/collective/direct.hpp"
#include "shmem/collective/members.hpp"
#include "shmem/collective/staged.hpp"

namespace shmem {

/// What an alltoall moves, once all members have told.
struct StagedCollectives::AlltoallPlan {
  BlockSizes sizes;
  std::size_t most = 0;    // bytes of a block in one piece
  std::size_t rounds = 0;  // of pieces
};

void StagedCollectives::stage_blocks(const StagedCall& call, std::size_t offset, std::size_t most) {
  for (int i = 0; i < team_.size(); ++i) {
    if (i != team_.me() && offset < call.from_bytes[i]) {
      const auto size = std::min<std::size_t>(most, call.from_bytes[i] - offset);
      move_bytes(next() + static_cast<std::size_t>(i) * most, static_cast<const std::byte*>(call.from[i]) + offset,
                 size);
      statistics_.staged_bytes += size;
    }
  }
}

void StagedCollectives::read_blocks(const StagedCall& call, const AlltoallPlan& plan, std::size_t offset) const {
  for (int distance = 1; distance < team_.size(); ++distance) {
    const int member = (team_.me() + distance) % team_.size();
    if (offset < call.to_bytes[member]) {
      move_bytes(static_cast<std::byte*>(call.to[member]) + offset,
                 staged(member) + static_cast<std::size_t>(team_.me()) * plan.most,
                 std::min<std::size_t>(plan.most, call.to_bytes[member] - offset));
    }
  }
}

/// After the exchange: an Error on all members unless each expects what the others give.
Result<void> StagedCollectives::agree_on_blocks(AlltoallPlan& plan) {
  const int members = team_.size();
  const std::size_t row_bytes = plan.sizes.row_bytes();
  const bool rows_in_line = row_bytes <= kInlineRoom;
  for (int member = 0; member < members; ++member) {
    std::memcpy(plan.sizes.row(member), rows_in_line ? given_data(member) : staged(member), row_bytes);
  }
  if (auto ok = plan.sizes.compare(team_.me()); !ok) {
    return ok;
  }
  std::uint64_t largest = 0;
  for (int from = 0; from < members; ++from) {
    for (int to = 0; to < members; ++to) {
      if (from != to && (given_head(from).flags & kInline) == 0) {
        largest = std::max(largest, plan.sizes.given(from, to));
      }
    }
  }
  plan.rounds = (largest + plan.most - 1) / plan.most;
  return {};
}

Result<void> StagedCollectives::alltoall(const StagedCall& call) {
  if (nodes_) {
    auto ok = meet(head_of(call, 0), 0, [](std::byte*) {});
    return ok ? nodes_->alltoall(call) : ok;
  }
  const int members = team_.size();
  AlltoallPlan plan{.sizes = BlockSizes(call, members),
                    .most = stages_.half / static_cast<std::size_t>(members) / 64 * 64};
  const std::uint64_t* const row = plan.sizes.my_row();
  const std::size_t row_bytes = plan.sizes.row_bytes();
  const std::size_t total = std::accumulate(call.from_bytes, call.from_bytes + members, std::size_t{0});
  const bool rows_in_line = row_bytes <= kInlineRoom;
  const bool in_line = rows_in_line && total <= kInlineRoom - row_bytes;
  std::vector<SymmetricPlace> places;
  if (rows_in_line && !in_line) {
    places = places_to_show(call, memories_, team_.me(), members);
  }
  const std::size_t places_bytes = places.size() * sizeof(SymmetricPlace);
  const bool shows = !places.empty() && places_bytes <= kInlineRoom - row_bytes;
  if (!rows_in_line) {
    std::memcpy(next(), row, row_bytes);
  } else if (!in_line && !shows) {
    stage_blocks(call, 0, plan.most);
  }
  const std::uint64_t flags = in_line ? std::uint64_t{kInline} : shows ? std::uint64_t{kDirect} : 0;
  const std::size_t along = rows_in_line ? row_bytes + (in_line ? total : shows ? places_bytes : 0) : 0;
  auto ok = meet(head_of(call, flags), along, [&](std::byte* to) {
    std::memcpy(to, row, rows_in_line ? row_bytes : 0);
    to += row_bytes;
    if (shows) {
      std::memcpy(to, places.data(), places_bytes);
    }
    for (int i = 0; in_line && i < members; ++i) {
      move_bytes(to, call.from[i], call.from_bytes[i]);
      to += call.from_bytes[i];
    }
  });
  if (ok) {
    ok = agree_on_blocks(plan);
  }
  StagedCall rest = call;
  std::vector<std::uint64_t> rest_bytes(call.to_bytes, call.to_bytes + members);
  rest.to_bytes = rest_bytes.data();
  bool any_shows = false;  // those have not staged their first blocks
  for (int member = 0; ok && member < members; ++member) {
    any_shows = any_shows || has_given(member, kDirect);
    if (has_given(member, kInline)) {
      const std::byte* from = given_data(member) + row_bytes;
      for (int i = 0; i < team_.me(); ++i) {
        from += plan.sizes.given(member, i);
      }
      move_bytes(call.to[member], from, plan.sizes.given(member, team_.me()));
      rest_bytes[static_cast<std::size_t>(member)] = 0;
    }
  }
  if (!ok && has_failed()) {
    return ok;
  }
  if (ok && any_shows && all_show(call)) {
    return run_directly(rest, row_bytes);
  }
  part();
  const std::vector<std::uint64_t> none(static_cast<std::size_t>(members));
  if (in_line) {
    rest.from_bytes = none.data();
  } else if (ok) {
    move_bytes(call.to[team_.me()], call.from[team_.me()], call.to_bytes[team_.me()]);  // not by way of the stage
  }
  for (std::size_t round = 0; ok && round < plan.rounds; ++round) {
    if (round != 0 || !rows_in_line || any_shows) {
      stage_blocks(rest, round * plan.most, plan.most);
      ok = next_piece();
    }
    if (ok) {
      read_blocks(rest, plan, round * plan.most);
    }
  }
  return ok;
}

}  // namespace shmem
