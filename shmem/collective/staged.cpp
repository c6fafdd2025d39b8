// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/staged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "shmem/collective/direct.hpp"

namespace shmem {
namespace {

/// Bytes combined at a time: they stay in the cache closest to the processor.
constexpr std::size_t kCombined = std::size_t{8} << 10;

void copy_bytes(void* to, const void* from, std::size_t size) {
  if (size != 0 && to != from) {
    std::memcpy(to, from, size);
  }
}

}  // namespace

StagedCollectives::StagedCollectives(const Job& job, Team& team, const Stages& stages,
                                     const SymmetricMemories& memories)
    : job_(job), team_(team), stages_(stages), memories_(memories), given_(static_cast<std::size_t>(team.size())) {}

std::byte* StagedCollectives::stage(int member, unsigned half) const {
  return job_.memory.heap(team_.map_here().pe(member)) + stages_.offset + (half % 2) * stages_.half;
}

bool StagedCollectives::gives(const StagedCall& call) const {
  return (call.kind != StagedCall::kBroadcast && call.kind != StagedCall::kScatter) || call.root == team_.me();
}

void StagedCollectives::write_piece(std::byte* to, const StagedCall& call, std::size_t offset, std::size_t size) const {
  if (!gives(call) || size == 0) {
    return;
  }
  const int blocks = has_blocks(call.kind) ? team_.size() : 1;
  for (int i = 0; i < blocks; ++i) {
    copy_bytes(to + static_cast<std::size_t>(i) * size, static_cast<const std::byte*>(call.from[i]) + offset, size);
  }
}

void StagedCollectives::stage_piece(const StagedCall& call, std::size_t offset, std::size_t size) {
  if (gives(call)) {
    write_piece(next(), call, offset, size);
    statistics_.staged_bytes += size * (has_blocks(call.kind) ? static_cast<std::size_t>(team_.size()) : 1);
  }
}

Result<void> StagedCollectives::meet(const CallHead& mine, std::size_t size,
                                     const std::function<void(std::byte*)>& write) {
  EagerChannel& eager = team_.eager();
  if (!eager.begin() || !eager.give(sizeof(CallHead) + size, [&](std::byte* to) {
        std::memcpy(to, &mine, sizeof(CallHead));
        write(to + sizeof(CallHead));
      })) {
    return eager.error();
  }
  for (int member = 0; member < team_.size(); ++member) {
    given_[static_cast<std::size_t>(member)] = eager.take(member);
    if (!given_[static_cast<std::size_t>(member)]) {
      return eager.error();
    }
  }
  ++turn_;  // on all members in each call, whether or not they have filled a half
  return compare_heads(team_.me(), team_.size(), [this](int member) { return given_head(member); });
}

const CallHead& StagedCollectives::given_head(int member) const {
  return *reinterpret_cast<const CallHead*>(given_[static_cast<std::size_t>(member)].data);
}

const std::byte* StagedCollectives::given_data(int member) const {
  return given_[static_cast<std::size_t>(member)].data + sizeof(CallHead);
}

Result<void> StagedCollectives::next_piece() {
  ++turn_;
  return team_.sync();
}

Result<void> StagedCollectives::run(const StagedCall& call) {
  if (const std::string problem = problem_of(call, team_.size()); !problem.empty()) {
    // The others hear of it, instead of waiting.
    auto ok = meet(head_of(call, CallHead::kRefused), 0, [](std::byte*) {});
    if (!ok && has_failed()) {
      return ok;
    }
    part();
    return fail(std::errc::invalid_argument, fmt::format("shmem: PE {}: {}", team_.me(), problem));
  }
  if (combines(call.kind)) {
    reduction_ = *typed_reduction(call.type, call.operation);
  }
  if (call.kind == StagedCall::kBarrier && team_barriers_) {
    return team_.sync();
  }
  return call.kind == StagedCall::kAlltoall ? alltoall(call) : make(call);
}

/// After the exchange: all members whose buffers are needed have shown where they are.
bool StagedCollectives::all_show(const StagedCall& call) const {
  const bool of_root = call.kind == StagedCall::kBroadcast || call.kind == StagedCall::kScatter;
  for (int member = 0; member < team_.size(); ++member) {
    if ((!of_root || member == call.root) && !has_given(member, kDirect) && !has_given(member, kInline)) {
      return false;
    }
  }
  return true;
}

/// After the exchange. The members have shown their places behind `skipped` bytes of their data.
Result<void> StagedCollectives::run_directly(const StagedCall& call, std::size_t skipped) {
  const DirectBuffers buffers = direct_buffers(call, memories_, team_.me(), team_.size(), [&](int member) {
    return has_given(member, kDirect) ? reinterpret_cast<const SymmetricPlace*>(given_data(member) + skipped) : nullptr;
  });
  part();
  move_directly(call, buffers, reduction_, team_.me());
  ++statistics_.direct_calls;
  return team_.sync();  // afterwards each may change its own buffers
}

Result<void> StagedCollectives::make(const StagedCall& call) {
  const std::size_t bytes = call.kind == StagedCall::kBarrier ? 0 : call.bytes;
  const std::size_t blocks = has_blocks(call.kind) ? static_cast<std::size_t>(team_.size()) : 1;
  const bool in_line = bytes <= kInlineRoom / blocks;
  // Whole cache lines, and so whole elements.
  const std::size_t most = in_line ? bytes : stages_.half / blocks / 64 * 64;
  const std::size_t first = std::min(bytes, most);
  std::vector<SymmetricPlace> places;
  if (!in_line) {
    places = places_to_show(call, memories_, team_.me(), team_.size());
  }
  const std::size_t places_bytes = places.size() * sizeof(SymmetricPlace);
  const bool shows = !places.empty() && places_bytes <= kInlineRoom;
  if (!in_line && !shows) {
    stage_piece(call, 0, first);
  }
  const bool takes_along = in_line && gives(call);
  const std::size_t along = takes_along ? bytes * blocks : shows ? places_bytes : 0;
  auto ok = meet(head_of(call, shows ? std::uint64_t{kDirect} : 0), along, [&](std::byte* to) {
    if (takes_along) {
      write_piece(to, call, 0, bytes);
    } else if (shows) {
      std::memcpy(to, places.data(), places_bytes);
    }
  });
  if (ok && !in_line && all_show(call)) {
    return run_directly(call, 0);
  }
  bool any_shows = false;  // those have not staged their first piece
  for (int member = 0; ok && !in_line && member < team_.size(); ++member) {
    any_shows = any_shows || has_given(member, kDirect);
  }
  if (ok && in_line && bytes != 0) {
    ok = use(call, 0, bytes, true, [this](int member) { return given_data(member); });
  }
  if (!ok && has_failed()) {
    return ok;
  }
  part();
  return ok && !in_line ? make_staged(call, most, !any_shows) : ok;
}

/// Piece by piece. `is_staged`: all members have staged their first one before the exchange.
Result<void> StagedCollectives::make_staged(const StagedCall& call, std::size_t most, bool is_staged) {
  for (std::size_t offset = 0; offset < call.bytes; offset += most) {
    const std::size_t size = std::min(most, call.bytes - offset);
    if (offset != 0 || !is_staged) {
      stage_piece(call, offset, size);
      if (auto ok = next_piece(); !ok) {
        return ok;
      }
    }
    if (auto ok = use(call, offset, size, false, [this](int member) { return staged(member); }); !ok) {
      return ok;
    }
  }
  return {};
}

template <typename Piece>
void StagedCollectives::combine(std::byte* to, std::size_t size, Piece piece_of) const {
  const std::size_t element = reduction_.reduction.element;
  for (std::size_t at = 0; at < size; at += kCombined) {
    const std::size_t part = std::min(kCombined, size - at);
    copy_bytes(to + at, piece_of(0) + at, part);
    for (int member = 1; member < team_.size(); ++member) {
      reduction_.reduction.combine(to + at, piece_of(member) + at, part / element);
    }
    if (reduction_.finish != nullptr) {
      reduction_.finish(to + at, part / element, team_.size());
    }
  }
}

/// Each member combines a share of the piece, in its own stage, and then reads all shares.
Result<void> StagedCollectives::combine_staged(const StagedCall& call, std::size_t offset, std::size_t size) {
  const Share mine = share_of(team_.me(), team_.size(), size);
  std::byte* const own = stage(team_.me(), turn_) + mine.begin;
  std::array<std::byte, kCombined> sum;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t at = 0; at < mine.size; at += kCombined) {
    const std::size_t part = std::min(kCombined, mine.size - at);
    combine(sum.data(), part, [&](int member) { return staged(member) + mine.begin + at; });
    copy_bytes(own + at, sum.data(), part);
  }
  if (auto ok = team_.sync(); !ok) {
    return ok;
  }
  if (call.kind == StagedCall::kReduce && call.root != team_.me()) {
    return {};
  }
  std::byte* const to = static_cast<std::byte*>(call.to[0]) + offset;
  for (int distance = 0; distance < team_.size(); ++distance) {
    const int member = (team_.me() + distance) % team_.size();
    const Share theirs = share_of(member, team_.size(), size);
    copy_bytes(to + theirs.begin, staged(member) + theirs.begin, theirs.size);
  }
  return {};
}

template <typename Piece>
Result<void> StagedCollectives::use(const StagedCall& call, std::size_t offset, std::size_t size, bool in_line,
                                    Piece piece_of) {
  const int me = team_.me();
  const auto to = [&](int i) { return static_cast<std::byte*>(call.to[i]) + offset; };
  switch (call.kind) {
    case StagedCall::kBroadcast:
      if (me != call.root) {
        copy_bytes(to(0), piece_of(call.root), size);
      }
      return {};
    case StagedCall::kReduce:
    case StagedCall::kAllreduce:
      if (!in_line) {
        return combine_staged(call, offset, size);
      }
      if (call.kind == StagedCall::kAllreduce || me == call.root) {
        combine(to(0), size, piece_of);
      }
      return {};
    case StagedCall::kGather:
    case StagedCall::kAllgather:
      for (int distance = 0; (call.kind == StagedCall::kAllgather || me == call.root) && distance < team_.size();
           ++distance) {
        const int member = (me + distance) % team_.size();
        copy_bytes(to(member), piece_of(member), size);
      }
      return {};
    case StagedCall::kScatter:
      copy_bytes(to(0), piece_of(call.root) + static_cast<std::size_t>(me) * size, size);
      return {};
    case StagedCall::kReduceScatter:
      combine(to(0), size, [&](int member) { return piece_of(member) + static_cast<std::size_t>(me) * size; });
      return {};
    case StagedCall::kBarrier:
    case StagedCall::kAlltoall:
      break;
  }
  return {};
}

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
      copy_bytes(next() + static_cast<std::size_t>(i) * most, static_cast<const std::byte*>(call.from[i]) + offset,
                 size);
      statistics_.staged_bytes += size;
    }
  }
}

void StagedCollectives::read_blocks(const StagedCall& call, const AlltoallPlan& plan, std::size_t offset) const {
  for (int distance = 1; distance < team_.size(); ++distance) {
    const int member = (team_.me() + distance) % team_.size();
    if (offset < call.to_bytes[member]) {
      copy_bytes(static_cast<std::byte*>(call.to[member]) + offset,
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
      copy_bytes(to, call.from[i], call.from_bytes[i]);
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
      copy_bytes(call.to[member], from, plan.sizes.given(member, team_.me()));
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
    copy_bytes(call.to[team_.me()], call.from[team_.me()], call.to_bytes[team_.me()]);  // not by way of the stage
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
