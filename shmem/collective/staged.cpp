// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/staged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "shmem/collective/direct.hpp"

namespace shmem {

StagedCollectives::StagedCollectives(Job& job, Team& team, const Stages& stages, const SymmetricMemories& memories)
    : job_(job), team_(team), stages_(stages), memories_(memories), given_(static_cast<std::size_t>(team.size())) {
  if (SpanningTeam* const spanning = team.spanning()) {
    nodes_.emplace(job, *spanning, stages);
  }
}

std::byte* StagedCollectives::stage(int member, unsigned half) const {
  return job_.memory.heap(team_.map_here().pe(member)) + stages_.offset + (half % 2) * stages_.half;
}

bool StagedCollectives::gives(const StagedCall& call) const {
  return (call.kind != StagedCall::kBroadcast && call.kind != StagedCall::kScatter) || call.root == team_.me();
}

bool StagedCollectives::takes_sums(const StagedCall& call) const {
  return combines(call.kind) && (call.kind != StagedCall::kReduce || call.root == team_.me());
}

void StagedCollectives::write_piece(std::byte* to, const StagedCall& call, std::size_t offset, std::size_t size) const {
  if (!gives(call) || size == 0) {
    return;
  }
  const int blocks = has_blocks(call.kind) ? team_.size() : 1;
  for (int i = 0; i < blocks; ++i) {
    move_bytes(to + static_cast<std::size_t>(i) * size, static_cast<const std::byte*>(call.from[i]) + offset, size);
  }
}

/// Whether this member combines what it gives to itself from where it is. It does not if the result would overwrite it
/// before.
bool StagedCollectives::keeps_own(const StagedCall& call) const {
  if (!takes_sums(call)) {
    return combines(call.kind);
  }
  const auto* const from = static_cast<const std::byte*>(own_block(call));
  const auto* const to = static_cast<const std::byte*>(call.to[0]);
  return from == to || from + call.bytes <= to || to + call.bytes <= from;
}

const void* StagedCollectives::own_block(const StagedCall& call) const {
  return call.from[has_blocks(call.kind) ? team_.me() : 0];
}

void StagedCollectives::stage_piece(const StagedCall& call, std::size_t offset, std::size_t size) {
  if (!gives(call)) {
    return;
  }
  const int blocks = has_blocks(call.kind) ? team_.size() : 1;
  statistics_.staged_bytes += size * static_cast<std::size_t>(blocks);
  if (!keeps_own(call)) {
    write_piece(next(), call, offset, size);
    return;
  }
  // The others do not read it: each combines its own share of one block, or its own one of several blocks.
  const Share mine =
      blocks == 1 ? share_of(team_.me(), team_.size(), size) : Share{static_cast<std::size_t>(team_.me()) * size, size};
  statistics_.staged_bytes -= mine.size;
  if (blocks == 1) {
    const auto* const from = static_cast<const std::byte*>(call.from[0]) + offset;
    const std::size_t end = mine.begin + mine.size;
    move_bytes(next(), from, mine.begin);
    move_bytes(next() + end, from + end, size - end);
    return;
  }
  for (int i = 0; i < blocks; ++i) {
    if (i != team_.me()) {
      move_bytes(next() + static_cast<std::size_t>(i) * size, static_cast<const std::byte*>(call.from[i]) + offset,
                 size);
    }
  }
}

Result<void> StagedCollectives::meet(const CallHead& mine, std::size_t size, Writer write) {
  EagerChannel& eager = team_.eager();
  const auto write_all = [&](std::byte* to) {
    std::memcpy(to, &mine, sizeof(CallHead));
    write(to + sizeof(CallHead));
  };
  if (nodes_) {
    if (auto ok = nodes_->meet(sizeof(CallHead) + size, write_all, given_); !ok) {
      return ok;
    }
  } else if (!eager.begin() || !eager.give(sizeof(CallHead) + size, write_all)) {
    return eager.error();
  }
  for (int member = 0; !nodes_ && member < team_.size(); ++member) {
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

/// Before each call. The members hear of one that cannot be made, instead of waiting.
Result<void> StagedCollectives::prepare(const StagedCall& call) {
  const std::string problem = problem_of(call, team_.size());
  if (problem.empty()) {
    if (combines(call.kind)) {
      reduction_ = *typed_reduction(call.type, call.operation);
    }
    return {};
  }
  auto ok = meet(head_of(call, CallHead::kRefused), 0, [](std::byte*) {});
  if (!ok && has_failed()) {
    return ok;
  }
  part();
  return fail(std::errc::invalid_argument, fmt::format("shmem: PE {}: {}", team_.me(), problem));
}

/// Small data goes along with the heads.
Result<void> StagedCollectives::run(const StagedCall& call) {
  if (auto ok = prepare(call); !ok) {
    return ok;
  }
  if (call.kind == StagedCall::kBarrier && team_barriers_) {
    return team_.sync();
  }
  if (call.kind == StagedCall::kAlltoall) {
    return alltoall(call);
  }
  const std::size_t bytes = call.kind == StagedCall::kBarrier ? 0 : call.bytes;
  const std::size_t blocks = has_blocks(call.kind) ? static_cast<std::size_t>(team_.size()) : 1;
  if (bytes > (nodes_ ? StagedOnNodes::kRoom : kInlineRoom) / blocks) {
    return run_large(call, blocks);
  }
  auto ok =
      meet(head_of(call, 0), gives(call) ? bytes * blocks : 0, [&](std::byte* to) { write_piece(to, call, 0, bytes); });
  const auto given = [&](int member, int block) {
    return given_data(member) + static_cast<std::size_t>(block) * bytes;
  };
  if (ok && bytes != 0 && takes_sums(call)) {
    combine_parts(
        reduction_.reduction, bytes, team_.size(),
        [&](int member, std::size_t at, std::size_t) { return given(member, blocks == 1 ? 0 : team_.me()) + at; },
        [&](std::size_t at, std::byte* sums, std::size_t part) {
          reduction_.complete(sums, part, team_.size());
          std::memcpy(static_cast<std::byte*>(call.to[0]) + at, sums, part);
        });
  } else if (ok && bytes != 0) {
    take(call, 0, bytes, given);
  }
  if (ok || !has_failed()) {
    part();
  }
  return ok;
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

/// By way of the stages, or on one node, if all members show where their buffers are, from there.
Result<void> StagedCollectives::run_large(const StagedCall& call, std::size_t blocks) {
  const std::size_t most = stages_.half / blocks / 64 * 64;  // whole cache lines, and so whole elements
  std::vector<SymmetricPlace> places;
  if (!nodes_) {
    places = places_to_show(call, memories_, team_.me(), team_.size());
  }
  const std::size_t places_bytes = places.size() * sizeof(SymmetricPlace);
  const bool shows = !places.empty() && places_bytes <= kInlineRoom;
  if (!nodes_ && !shows) {
    stage_piece(call, 0, std::min(call.bytes, most));
  }
  auto ok = meet(head_of(call, shows ? std::uint64_t{kDirect} : 0), shows ? places_bytes : 0, [&](std::byte* to) {
    if (shows) {
      std::memcpy(to, places.data(), places_bytes);
    }
  });
  if (ok && nodes_) {
    return nodes_->make(call, reduction_);
  }
  if (ok && all_show(call)) {
    return run_directly(call, 0);
  }
  bool any_shows = false;  // those have not staged their first piece
  for (int member = 0; ok && member < team_.size(); ++member) {
    any_shows = any_shows || has_given(member, kDirect);
  }
  if (ok || !has_failed()) {
    part();
  }
  return ok ? make_staged(call, most, !any_shows) : ok;
}

/// Piece by piece. `is_staged`: all members have staged their first one before the exchange.
Result<void> StagedCollectives::make_staged(const StagedCall& call, std::size_t most, bool is_staged) {
  Result<void> ok;
  for (std::size_t offset = 0; ok && offset < call.bytes; offset += most) {
    const std::size_t size = std::min(most, call.bytes - offset);
    if (offset != 0 || !is_staged) {
      stage_piece(call, offset, size);
      ok = next_piece();
    }
    if (ok && combines(call.kind)) {
      ok = combine_staged(call, offset, size);
    } else if (ok) {
      take(call, offset, size,
           [&](int member, int block) { return staged(member) + static_cast<std::size_t>(block) * size; });
    }
  }
  return ok;
}

/// Each member combines its own block, or a share of the only one, which it shows in its own stage; then it reads the
/// others' shares.
Result<void> StagedCollectives::combine_staged(const StagedCall& call, std::size_t offset, std::size_t size) {
  const int me = team_.me();
  const bool shares = !has_blocks(call.kind);
  const Share mine = shares ? share_of(me, team_.size(), size) : Share{0, size};
  const std::size_t place = shares ? mine.begin : static_cast<std::size_t>(me) * size;  // in the stages
  const std::byte* const own =
      keeps_own(call) ? static_cast<const std::byte*>(own_block(call)) + offset + mine.begin : staged(me) + place;
  std::byte* const shown = stage(me, turn_) + place;
  const bool takes = takes_sums(call);
  std::byte* const to = takes ? static_cast<std::byte*>(call.to[0]) + offset : nullptr;
  combine_parts(
      reduction_.reduction, mine.size, team_.size(),
      [&](int member, std::size_t at, std::size_t) { return (member == me ? own : staged(member) + place) + at; },
      [&](std::size_t at, std::byte* sums, std::size_t part) {
        reduction_.complete(sums, part, team_.size());
        if (call.kind == StagedCall::kAllreduce || !takes) {
          move_bytes(shown + at, sums, part);
        }
        if (takes) {
          move_bytes(to + mine.begin + at, sums, part);
        }
      });
  auto ok = shares ? team_.sync() : Result<void>();
  for (int distance = 1; ok && shares && takes && distance < team_.size(); ++distance) {
    const int member = (me + distance) % team_.size();
    const Share theirs = share_of(member, team_.size(), size);
    move_bytes(to + theirs.begin, staged(member) + theirs.begin, theirs.size);
  }
  return ok;
}

/// What this member takes as it is: block_of(member, block) is a block of what a member gives.
template <typename Block>
void StagedCollectives::take(const StagedCall& call, std::size_t offset, std::size_t size, Block block_of) const {
  const int me = team_.me();
  const auto to = [&](int i) { return static_cast<std::byte*>(call.to[i]) + offset; };
  if (call.kind == StagedCall::kScatter) {
    move_bytes(to(0), block_of(call.root, me), size);
  } else if (call.kind == StagedCall::kBroadcast && me != call.root) {
    move_bytes(to(0), block_of(call.root, 0), size);
  } else if (call.kind == StagedCall::kAllgather || (call.kind == StagedCall::kGather && me == call.root)) {
    for (int distance = 0; distance < team_.size(); ++distance) {
      const int member = (me + distance) % team_.size();
      move_bytes(to(member), block_of(member, 0), size);
    }
  }
}

}  // namespace shmem
