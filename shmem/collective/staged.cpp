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
  if (!combines(call.kind) || (call.kind == StagedCall::kReduce && call.root != team_.me())) {
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
  if (nodes_) {
    return run_on_nodes(call);
  }
  return call.kind == StagedCall::kAlltoall ? alltoall(call) : make(call);
}

/// Small data goes along with the heads.
Result<void> StagedCollectives::run_on_nodes(const StagedCall& call) {
  const bool has_data = call.kind != StagedCall::kBarrier && call.kind != StagedCall::kAlltoall;
  const std::size_t bytes = has_data ? call.bytes : 0;
  const std::size_t blocks = has_blocks(call.kind) ? static_cast<std::size_t>(team_.size()) : 1;
  const bool in_line = bytes <= StagedOnNodes::kRoom / blocks;
  const bool takes_along = in_line && gives(call);
  auto ok = meet(head_of(call, 0), takes_along ? bytes * blocks : 0,
                 [&](std::byte* to) { write_piece(to, call, 0, takes_along ? bytes : 0); });
  if (!ok) {
    return ok;
  }
  if (call.kind == StagedCall::kAlltoall) {
    return nodes_->alltoall(call);
  }
  if (!in_line) {
    return nodes_->make(call, reduction_);
  }
  return bytes == 0 ? ok : use(call, 0, bytes, true, [this](int member) { return given_data(member); });
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

/// Combines the members' pieces, and calls write(offset, sums, size) for each part.
template <typename Piece, typename Write>
void StagedCollectives::combine(std::size_t size, Piece piece_of, Write write) const {
  combine_parts(
      reduction_.reduction, size, team_.size(),
      [&](int member, std::size_t at, std::size_t) { return piece_of(member) + at; },
      [&](std::size_t at, std::byte* sums, std::size_t part) {
        reduction_.complete(sums, part, team_.size());
        write(at, sums, part);
      });
}

/// Each member combines a share of the piece, shows it in its own stage, and then reads the others' shares.
Result<void> StagedCollectives::combine_staged(const StagedCall& call, std::size_t offset, std::size_t size) {
  const int me = team_.me();
  const bool takes = call.kind == StagedCall::kAllreduce || call.root == me;
  const Share mine = share_of(me, team_.size(), size);
  const std::byte* const own = keeps_own(call) ? static_cast<const std::byte*>(call.from[0]) + offset : staged(me);
  std::byte* const shown = stage(me, turn_) + mine.begin;
  std::byte* const to = takes ? static_cast<std::byte*>(call.to[0]) + offset : nullptr;
  combine(
      mine.size, [&](int member) { return (member == me ? own : staged(member)) + mine.begin; },
      [&](std::size_t at, const std::byte* sums, std::size_t part) {
        if (call.kind == StagedCall::kAllreduce || !takes) {
          move_bytes(shown + at, sums, part);
        }
        if (takes) {
          move_bytes(to + mine.begin + at, sums, part);
        }
      });
  if (auto ok = team_.sync(); !ok) {
    return ok;
  }
  for (int distance = 1; takes && distance < team_.size(); ++distance) {
    const int member = (me + distance) % team_.size();
    const Share theirs = share_of(member, team_.size(), size);
    move_bytes(to + theirs.begin, staged(member) + theirs.begin, theirs.size);
  }
  return {};
}

template <typename Piece>
Result<void> StagedCollectives::use(const StagedCall& call, std::size_t offset, std::size_t size, bool in_line,
                                    Piece piece_of) {
  const int me = team_.me();
  const auto to = [&](int i) { return static_cast<std::byte*>(call.to[i]) + offset; };
  const auto write = [&](std::size_t at, const std::byte* sums, std::size_t part) {
    move_bytes(to(0) + at, sums, part);
  };
  switch (call.kind) {
    case StagedCall::kBroadcast:
      if (me != call.root) {
        move_bytes(to(0), piece_of(call.root), size);
      }
      return {};
    case StagedCall::kReduce:
    case StagedCall::kAllreduce:
      if (!in_line) {
        return combine_staged(call, offset, size);
      }
      if (call.kind == StagedCall::kAllreduce || me == call.root) {
        combine(size, piece_of, write);
      }
      return {};
    case StagedCall::kGather:
    case StagedCall::kAllgather:
      for (int distance = 0; (call.kind == StagedCall::kAllgather || me == call.root) && distance < team_.size();
           ++distance) {
        const int member = (me + distance) % team_.size();
        move_bytes(to(member), piece_of(member), size);
      }
      return {};
    case StagedCall::kScatter:
      move_bytes(to(0), piece_of(call.root) + static_cast<std::size_t>(me) * size, size);
      return {};
    case StagedCall::kReduceScatter:
      combine(
          size,
          [&](int member) {
            return member == me && !in_line && keeps_own(call) ? static_cast<const std::byte*>(own_block(call)) + offset
                                                               : piece_of(member) + static_cast<std::size_t>(me) * size;
          },
          write);
      return {};
    case StagedCall::kBarrier:
    case StagedCall::kAlltoall:
      break;
  }
  return {};
}

}  // namespace shmem
