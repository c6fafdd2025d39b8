// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/staged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "shmem/collective/direct.hpp"

namespace shmem {

/// What a member says of its data when a call begins.
struct StagedCollectives::Offer {
  std::size_t most;                   // bytes of a block in one piece: whole cache lines, and so whole elements
  std::size_t longest;                // bytes of the longest block that is made by pieces
  std::optional<BlockSizes> sizes{};  // of an alltoall
  std::vector<SymmetricPlace> places{};
  std::uint64_t flag = 0;  // kInline: its blocks go along; kDirect: its places; 0: its first piece is in its stage
  std::size_t row = 0;     // bytes of its sizes, which go along; 0: there are none, or they are in its stage
  std::size_t along = 0;   // bytes that go along behind those
};

StagedCollectives::StagedCollectives(Job& job, Team& team, const Stages& stages, const SymmetricMemories& memories)
    : job_(job),
      team_(team),
      stages_(stages),
      memories_(memories),
      heads_(static_cast<std::size_t>(team.size())),
      from_(heads_.size()) {
  to_.reserve(heads_.size() + 1);
  if (SpanningTeam* const spanning = team.spanning()) {
    nodes_.emplace(job, *spanning, stages);
  }
}

std::byte* StagedCollectives::stage(int member, unsigned half) const {
  return job_.memory.heap(team_.map_here().pe(member)) + stages_.offset + (half % 2) * stages_.half;
}

Share StagedCollectives::my_share(const StagedCall& call, std::size_t size) const {
  return has_blocks(call.kind) ? Share{0, size} : share_of(team_.me(), team_.size(), size);
}

/// All that this member gives, without gaps.
void StagedCollectives::write(std::byte* to, const StagedCall& call) const {
  for (std::size_t i = 0; gives(call, team_.me()) && i < blocks(call); ++i) {
    if (const std::size_t size = given_bytes(call, i); size != 0) {
      move_bytes(to, call.from[i], size);
      to += size;
    }
  }
}

/// Whether this member takes what it gives to itself from where it is. It does not if the result would overwrite that
/// before.
bool StagedCollectives::keeps_own(const StagedCall& call) const {
  if (!takes_sums(call, team_.me())) {
    return combines(call.kind) || call.kind == StagedCall::kAlltoall;
  }
  const std::byte* const from = own_block(call);
  const auto* const to = static_cast<const std::byte*>(call.to[0]);
  return from == to || from + call.bytes <= to || to + call.bytes <= from;
}

/// What it gives to itself.
const std::byte* StagedCollectives::own_block(const StagedCall& call) const {
  return static_cast<const std::byte*>(call.from[has_blocks(call.kind) ? team_.me() : 0]);
}

/// A piece of each block, but for what no other member reads: of one block each combines its own share, and of several
/// it takes its own.
void StagedCollectives::stage_piece(const StagedCall& call, std::size_t offset, std::size_t most) {
  const auto me = static_cast<std::size_t>(team_.me());
  for (std::size_t i = 0; gives(call, team_.me()) && i < blocks(call); ++i) {
    const std::size_t size = piece_of(given_bytes(call, i), offset, most);
    if (size == 0) {
      continue;
    }
    const bool is_own = !has_blocks(call.kind) || i == me;
    const Share own = is_own && keeps_own(call) ? my_share(call, size) : Share{};
    const auto* const from = static_cast<const std::byte*>(call.from[i]) + offset;
    statistics_.staged_bytes += move_around(next() + i * most, from, size, own);
  }
}

/// After an Error the members have parted.
Result<void> StagedCollectives::meet(const CallHead& mine, std::size_t size, Writer write) {
  EagerChannel& eager = team_.eager();
  const auto write_all = [&](std::byte* to) {
    std::memcpy(to, &mine, sizeof(CallHead));
    write(to + sizeof(CallHead));
  };
  if (nodes_) {
    if (auto ok = nodes_->meet(sizeof(CallHead) + size, write_all, heads_); !ok) {
      return ok;
    }
  } else if (!eager.begin() || !eager.give(sizeof(CallHead) + size, write_all)) {
    return eager.error();
  }
  for (int member = 0; !nodes_ && member < team_.size(); ++member) {
    const EagerChannel::Given given = eager.take(member);
    if (!given) {
      return eager.error();
    }
    heads_[static_cast<std::size_t>(member)] = reinterpret_cast<const CallHead*>(given.data);
  }
  ++turn_;  // on all members in each call, whether or not they have filled a half
  auto same = compare_heads(team_.me(), heads_);
  if (!same) {
    part();
  }
  return same;
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
  if (auto ok = meet(head_of(call, CallHead::kRefused), 0, [](std::byte*) {}); !ok && has_failed()) {
    return ok;
  }
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
  const std::size_t bytes = call.kind == StagedCall::kBarrier ? 0 : call.bytes;
  const std::size_t room = (nodes_ ? StagedOnNodes::kRoom : kInlineRoom) / blocks(call);
  if (call.kind == StagedCall::kAlltoall || bytes > room) {
    return run_large(call);
  }
  const std::size_t given = gives(call, team_.me()) ? bytes * blocks(call) : 0;
  if (auto ok = meet(head_of(call, 0), given, [&](std::byte* to) { write(to, call); }); !ok) {
    return ok;
  }
  if (bytes != 0) {
    const std::size_t block = has_blocks(call.kind) ? static_cast<std::size_t>(team_.me()) * bytes : 0;
    set_from([&](int member) { return data(member) + block; });
    put_sums_to(call, 0);
    take_or_combine(call, 0, bytes, {0, bytes});
  }
  part();
  return {};
}

/// Data that does not go along with the heads, or only some members' data. In the members' symmetric memory if all
/// show where it is, or by way of the stages.
Result<void> StagedCollectives::run_large(const StagedCall& call) {
  if (nodes_) {
    auto ok = meet(head_of(call, 0), 0, [](std::byte*) {});
    return ok ? nodes_->make(call, reduction_) : ok;
  }
  Offer mine = offer_of(call);
  if (auto ok = offer(call, mine); !ok) {
    return ok;
  }
  bool any_shows = false;
  bool all_show = true;  // whose buffers are needed
  for (int member = 0; member < team_.size(); ++member) {
    const bool shows = has_given(member, kDirect);
    const bool went_along = has_given(member, kInline);
    const bool is_taken = went_along || (mine.sizes && member == team_.me());
    from_[static_cast<std::size_t>(member)] = is_taken ? nullptr : staged(member);
    any_shows = any_shows || shows;
    all_show = all_show && (shows || went_along || !gives(call, member));
  }
  if (any_shows && all_show) {
    return run_directly(call, mine.row);
  }
  part();
  return run_staged(call, mine, any_shows);
}

/// In an alltoall the sizes go along if there is room, and the blocks if they are few.
StagedCollectives::Offer StagedCollectives::offer_of(const StagedCall& call) const {
  Offer mine{.most = stages_.half / blocks(call) / 64 * 64, .longest = call.bytes};
  std::size_t room = kInlineRoom;
  if (call.kind == StagedCall::kAlltoall) {
    mine.sizes.emplace(call, team_.size());
    mine.row = mine.sizes->row_bytes() <= room ? mine.sizes->row_bytes() : 0;
    room = mine.row != 0 ? room - mine.row : 0;
    if (mine.sizes->all_given() <= room) {
      mine.flag = kInline;
      mine.along = mine.sizes->all_given();
      return mine;
    }
  }
  mine.places = places_to_show(call, memories_, team_.me(), team_.size());
  if (const std::size_t bytes = mine.places.size() * sizeof(SymmetricPlace); bytes != 0 && bytes <= room) {
    mine.flag = kDirect;
    mine.along = bytes;
  }
  return mine;
}

/// The exchange. The first pieces are in the stages by then.
Result<void> StagedCollectives::offer(const StagedCall& call, Offer& mine) {
  if (mine.sizes && mine.row == 0) {
    std::memcpy(next(), mine.sizes->my_row(), mine.sizes->row_bytes());
  } else if (mine.flag == 0) {
    stage_piece(call, 0, mine.most);
  }
  auto ok = meet(head_of(call, mine.flag), mine.row + mine.along, [&](std::byte* to) {
    if (mine.row != 0) {
      std::memcpy(to, mine.sizes->my_row(), mine.row);
    }
    if (mine.flag == kInline) {
      write(to + mine.row, call);
    } else if (mine.flag == kDirect) {
      std::memcpy(to + mine.row, mine.places.data(), mine.along);
    }
  });
  return ok && mine.sizes ? take_along(call, mine) : ok;
}

/// In an alltoall: an Error on all members unless each expects what the others give. Takes what has come along, and
/// this member's own block.
Result<void> StagedCollectives::take_along(const StagedCall& call, Offer& mine) {
  const int me = team_.me();
  BlockSizes& sizes = *mine.sizes;
  for (int member = 0; member < team_.size(); ++member) {
    std::memcpy(sizes.row(member), mine.row != 0 ? data(member) : staged(member), sizes.row_bytes());
  }
  if (auto ok = sizes.compare(me); !ok) {
    part();
    return ok;
  }
  mine.longest = sizes.longest([&](int from, int to) { return from != to && !has_given(from, kInline); });
  set_from([&](int member) {
    return has_given(member, kInline) ? data(member) + mine.row + sizes.begin(member, me)
           : member == me             ? own_block(call)
                                      : nullptr;
  });
  take_or_combine(call, 0, SIZE_MAX, {});
  return {};
}

/// After the exchange, in which all members whose buffers are needed have shown them, behind `row` bytes.
Result<void> StagedCollectives::run_directly(const StagedCall& call, std::size_t row) {
  to_.clear();
  if (!shares_sums(call.kind)) {
    put_sums_to(call, 0);
  }
  const int block = has_blocks(call.kind) ? team_.me() : 0;
  for (int member = 0; member < team_.size(); ++member) {
    auto& from = from_[static_cast<std::size_t>(member)];
    if (from == nullptr || !has_given(member, kDirect)) {
      continue;  // it has been taken, or is not needed
    }
    const auto* const places = reinterpret_cast<const SymmetricPlace*>(data(member) + row);
    from = memories_.address(places[block], member);
    if (shares_sums(call.kind) && takes_sums(call, member)) {
      to_.push_back(memories_.address(places[1], member));
    }
  }
  part();
  take_or_combine(call, 0, SIZE_MAX, my_share(call, call.bytes));
  ++statistics_.direct_calls;
  return team_.sync();  // afterwards each may change its own buffers
}

/// Piece by piece. `again`: not all members have staged their first one before the exchange.
Result<void> StagedCollectives::run_staged(const StagedCall& call, const Offer& mine, bool again) {
  Result<void> ok;
  for (std::size_t offset = 0; ok && offset < mine.longest; offset += mine.most) {
    if (offset != 0 || again || (mine.sizes && mine.row == 0)) {
      if (mine.flag != kInline) {
        stage_piece(call, offset, mine.most);
      }
      ok = next_piece();
    }
    if (ok) {
      ok = make_staged(call, offset, mine.most);
    }
  }
  return ok;
}

/// A piece of which all have staged theirs. Shares of sums go to the stages, too, where the other members fetch them.
Result<void> StagedCollectives::make_staged(const StagedCall& call, std::size_t offset, std::size_t most) {
  const int me = team_.me();
  const std::size_t block = has_blocks(call.kind) ? static_cast<std::size_t>(me) * most : 0;
  set_from([&](int member) {
    return from_[static_cast<std::size_t>(member)] != nullptr ? staged(member) + block : nullptr;
  });
  if (combines(call.kind) && keeps_own(call)) {
    from_[static_cast<std::size_t>(me)] = own_block(call) + offset;
  }
  const std::size_t size = piece_of(call.bytes, offset, most);
  const bool shares = shares_sums(call.kind);
  put_sums_to(call, offset);
  if (shares && (call.kind == StagedCall::kAllreduce || to_.empty())) {
    to_.push_back(stage(me, turn_));
  }
  take_or_combine(call, offset, most, my_share(call, size));
  auto ok = shares ? team_.sync() : Result<void>();
  if (ok && shares && takes_sums(call, team_.me())) {
    fetch_shares(me, team_.size(), size, [&](int member, const Share& share) {
      move_bytes(to_.front() + share.begin, staged(member) + share.begin, share.size);
    });
  }
  return ok;
}

void StagedCollectives::put_sums_to(const StagedCall& call, std::size_t offset) {
  to_.clear();
  if (takes_sums(call, team_.me())) {
    to_.push_back(static_cast<std::byte*>(call.to[0]) + offset);
  }
}

/// This member's part of a piece, from where from_ says: it takes blocks, or combines a share, for all of to_.
void StagedCollectives::take_or_combine(const StagedCall& call, std::size_t offset, std::size_t most,
                                        const Share& share) {
  const int me = team_.me();
  const int members = team_.size();
  const auto from = [this](int member) { return from_[static_cast<std::size_t>(member)]; };
  const auto take = [&](int member, int buffer) {
    const std::size_t size = piece_of(taken_bytes(call, static_cast<std::size_t>(member)), offset, most);
    if (from(member) != nullptr && size != 0) {
      move_bytes(static_cast<std::byte*>(call.to[buffer]) + offset, from(member), size);
    }
  };
  if (combines(call.kind) && !to_.empty()) {
    combine_parts(
        reduction_.reduction, share, members,
        [&](int member, std::size_t at, std::size_t) { return from(member) + at; },
        [&](std::size_t at, std::byte* sums, std::size_t part) {
          reduction_.complete(sums, part, members);
          for (std::byte* const to : to_) {
            copy_cached(to + at, sums, part);
          }
        });
  } else if (call.kind == StagedCall::kScatter || (call.kind == StagedCall::kBroadcast && me != call.root)) {
    take(call.root, 0);
  } else if (call.kind == StagedCall::kAllgather || call.kind == StagedCall::kAlltoall ||
             (call.kind == StagedCall::kGather && me == call.root)) {
    to_the_right(me, members, 0, [&](int member) { take(member, member); });
  }
}

}  // namespace shmem
