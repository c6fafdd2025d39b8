// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/staged_nodes.hpp"

#include <algorithm>
#include <numeric>

#include "shmem/collective/multi_leader.hpp"
#include "shmem/collective/on_nodes.hpp"
#include "shmem/memory/scratch_buffer.hpp"

namespace shmem {
namespace {

/// A member that waits for its leader gives up only after the leader, which waits for other nodes, and that after the
/// members of a node, which wait for each other: so the message of the first is about the member that is missing.
constexpr std::chrono::milliseconds kLater{300};

std::span<const std::byte> span_of(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}
std::span<std::byte> span_of(void* data, std::size_t bytes) {
  return {static_cast<std::byte*>(data), bytes};
}

bool share_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
  return !one.empty() && !other.empty() && one.data() < other.data() + other.size() &&
         other.data() < one.data() + one.size();
}

/// While it exists, waits in shared memory have a longer limit.
class Longer {
 public:
  Longer(Job& job, std::chrono::milliseconds more) : limit_(job.options.barrier_timeout), before_(limit_) {
    limit_ += limit_.count() != 0 ? more : more * 0;
  }
  Longer(const Longer&) = delete;
  Longer& operator=(const Longer&) = delete;
  ~Longer() { limit_ = before_; }

 private:
  std::chrono::milliseconds& limit_;
  const std::chrono::milliseconds before_;
};

}  // namespace

StagedOnNodes::StagedOnNodes(Job& job, SpanningTeam& team, const Stages& stages)
    : job_(job),
      team_(team),
      stage_(job.memory.heap(job.me) + stages.offset),
      room_(2 * stages.half),
      board_(stages.board),
      places_(static_cast<std::size_t>(team.size())) {
  std::size_t place = 0;
  for (const auto& node : team.by_node()) {
    for (const int member : node) {
      places_[static_cast<std::size_t>(member)] = place++;
    }
  }
}

/// An Error of what moves data is the end of the group: the members do not know what the others have got.
template <typename Made>
Made StagedOnNodes::checked(Made made) {
  failed_ = failed_ || !made;
  return made;
}

void StagedOnNodes::set_limit(std::chrono::nanoseconds limit) {
  const auto of_calls = limit.count() != 0 ? ProcessGroup::Limit(limit + kLater) : std::nullopt;
  for (ProcessGroup* const group : {team_.leads() ? &team_.leaders() : team_.rail(), &team_.everybody()}) {
    if (group != nullptr) {
      group->set_limit(of_calls);
    }
  }
}

/// The leader's, with the openings of this meeting.
StagedOnNodes::Opening* StagedOnNodes::board() const {
  auto* const both = reinterpret_cast<Opening*>(job_.memory.heap(team_.map_here().pe(0)) + board_);
  return both + meetings_ % 2 * places_.size();
}

/// Each leader sends to each, which is a round trip less than a tree. Openings have one size: calls may differ.
Result<void> StagedOnNodes::exchange_openings(Opening* all) {
  const auto& nodes = team_.by_node();
  const auto mine = static_cast<std::size_t>(team_.my_node());
  std::vector<std::span<Opening>> of_nodes;
  of_nodes.reserve(nodes.size());
  for (const auto& node : nodes) {
    of_nodes.emplace_back(all + places_[static_cast<std::size_t>(node.front())], node.size());
  }
  Given given(nodes.size(), std::as_bytes(of_nodes[mine]));
  Taken taken;
  for (const auto& of_node : of_nodes) {
    taken.push_back(std::as_writable_bytes(of_node));
  }
  given[mine] = taken[mine] = {};
  return team_.leaders().alltoall(given, taken);
}

Result<void> StagedOnNodes::meet(std::size_t size, Writer write, std::span<const CallHead*> heads) {
  EagerChannel& eager = team_.eager();
  ++meetings_;
  Opening* const all = board();
  const auto here = [&](int place) { return *team_.map().member(job_.nodes.world(team_.map_here().pe(place))); };
  if (!eager.begin() || (!team_.leads() && !eager.give(size, write))) {
    return checked(Result<void>(eager.error()));
  }
  Result<void> done;
  if (team_.leads()) {
    write(all[places_[static_cast<std::size_t>(team_.me())]].bytes.data());
    for (int place = 1; place < team_.map_here().size; ++place) {
      const EagerChannel::Given theirs = eager.take(place);
      if (!theirs) {
        return checked(Result<void>(eager.error()));
      }
      copy_small(all[places_[static_cast<std::size_t>(here(place))]].bytes.data(), theirs.data, theirs.size);
    }
    eager.end(EagerChannel::Begun::kThis);
    done = exchange_openings(all);
  } else {
    eager.end(EagerChannel::Begun::kUnknown);
  }
  const Longer longer(job_, 2 * kLater);
  const auto released = checked(team_.release_here(done));
  for (std::size_t member = 0; member < heads.size(); ++member) {
    heads[member] = reinterpret_cast<const CallHead*>(all[places_[member]].bytes.data());
  }
  return released ? Result<void>() : released.error();
}

Members StagedOnNodes::members() const {
  Members members{job_, team_.map(), team_.me(), nullptr, team_.slot()};
  members.here = team_.map_here();
  members.choice = &team_.collectives();
  members.spanning = &team_;
  return members;
}

Result<void> StagedOnNodes::make(const StagedCall& call, const TypedReduction& reduction) {
  if (call.kind == StagedCall::kAlltoall) {
    return alltoall(call);
  }
  const bool alone = team_.nodes() == team_.size() && call.kind != StagedCall::kReduceScatter;
  if (alone || call.kind == StagedCall::kGather || call.kind == StagedCall::kScatter) {
    return checked(alone ? make_alone(call, reduction) : move(call));
  }
  const auto number = static_cast<std::size_t>(team_.size());
  // What a member gives, and for an allgather behind it what all give. Whole cache lines, and so whole elements.
  const std::size_t blocks = has_blocks(call.kind) ? number : call.kind == StagedCall::kAllgather ? number + 1 : 1;
  const std::size_t most = room_ / blocks / 64 * 64;
  const Longer longer(job_, 2 * kLater);
  Result<void> ok;
  for (std::size_t offset = 0; ok && offset < call.bytes; offset += most) {
    ok = make_piece(call, reduction, offset, std::min(most, call.bytes - offset));
  }
  return checked(std::move(ok));
}

/// Each member has a node of its own, and shares memory with no other one.
Result<void> StagedOnNodes::make_alone(const StagedCall& call, const TypedReduction& typed) {
  ProcessGroup& all = team_.everybody();
  const bool is_root = call.root == team_.me();
  if (call.kind == StagedCall::kBroadcast) {
    return all.broadcast(is_root ? const_cast<void*>(call.from[0]) : call.to[0], call.bytes, call.root);
  }
  if (!combines(call.kind)) {
    return move(call);
  }
  const bool takes = call.kind == StagedCall::kAllreduce || is_root;
  Result<void> ok;
  for (std::size_t offset = 0; ok && offset < call.bytes; offset += room_) {
    const std::size_t size = std::min(room_, call.bytes - offset);
    const std::size_t count = size / typed.reduction.element;
    std::byte* const to = takes ? static_cast<std::byte*>(call.to[0]) + offset : stage_;
    move_bytes(to, static_cast<const std::byte*>(call.from[0]) + offset, size);
    ok = all.allreduce(to, count, typed.reduction);
    if (ok && takes) {
      typed.complete(to, size, team_.size());
    }
  }
  return ok;
}

/// Members combine their shares of a long piece, each from its own memory and the stages of the others.
Result<void> StagedOnNodes::reduce_piece(const StagedCall& call, const TypedReduction& typed, std::size_t offset,
                                         std::size_t size) {
  const Members all = members();
  const auto* const from = static_cast<const std::byte*>(call.from[0]) + offset;
  const bool takes = call.kind == StagedCall::kAllreduce || call.root == team_.me();
  std::byte* const to = takes ? static_cast<std::byte*>(call.to[0]) + offset : nullptr;
  const std::size_t count = size / typed.reduction.element;
  Result<void> ok;
  if (multi_leader::pays(all, size)) {
    staged_bytes_ += move_around(stage_, from, size, multi_leader::share_here(all, size));
    const multi_leader::OwnBuffers buffers{from, to};
    ok = multi_leader::reduce(all, typed.reduction, stage_, stage_, count, &buffers);
  } else {
    move_bytes(stage_, from, size);
    staged_bytes_ += size;
    ok = on_nodes::reduce(all, typed.reduction, stage_, stage_, count);
    if (ok && takes) {
      move_bytes(to, stage_, size);
    }
  }
  if (ok && takes) {
    typed.complete(to, size, team_.size());
  }
  return ok;
}

/// Each member combines the blocks for itself and for the members at its place on the other nodes; or the leader of
/// each node all of them.
Result<void> StagedOnNodes::scatter_piece(const StagedCall& call, const TypedReduction& typed, std::size_t offset,
                                          std::size_t size) {
  const Members all = members();
  const auto number = static_cast<std::size_t>(team_.size());
  const bool by_all = multi_leader::scatters(all, size * number);
  std::vector<const std::byte*> own;
  for (std::size_t i = 0; i < number; ++i) {
    own.push_back(static_cast<const std::byte*>(call.from[i]) + offset);
    if (!by_all || !multi_leader::is_at_my_place(all, static_cast<int>(i))) {
      move_bytes(stage_ + (by_all ? i : places_[i]) * size, own.back(), size);
      staged_bytes_ += size;
    }
  }
  std::byte* const to = static_cast<std::byte*>(call.to[0]) + offset;
  auto ok = by_all ? multi_leader::reduce_scatter(all, typed.reduction, stage_, size, own, to)
                   : on_nodes::reduce_scatter(all, typed.reduction, stage_, size);
  if (ok && !by_all) {
    move_bytes(to, stage_ + places_[static_cast<std::size_t>(team_.me())] * size, size);
  }
  if (ok) {
    typed.complete(to, size, team_.size());
  }
  return ok;
}

/// When a collective of the team has ended, no other member reads or writes this member's stage any more.
Result<void> StagedOnNodes::make_piece(const StagedCall& call, const TypedReduction& typed, std::size_t offset,
                                       std::size_t size) {
  if (call.kind == StagedCall::kReduce || call.kind == StagedCall::kAllreduce) {
    return reduce_piece(call, typed, offset, size);
  }
  if (call.kind == StagedCall::kReduceScatter) {
    return scatter_piece(call, typed, offset, size);
  }
  const Members all = members();
  const bool is_root = call.root == team_.me();
  const bool broadcasts = call.kind == StagedCall::kBroadcast;  // else it gathers
  if (!broadcasts || is_root) {
    move_bytes(stage_, static_cast<const std::byte*>(call.from[0]) + offset, size);
    staged_bytes_ += size;
  }
  const auto to = [&](std::size_t i) { return static_cast<std::byte*>(call.to[i]) + offset; };
  if (broadcasts && multi_leader::pays(all, size)) {
    return multi_leader::broadcast(all, stage_, stage_, size, call.root, team_.node_of(call.root),
                                   is_root ? nullptr : to(0));
  }
  if (broadcasts) {
    auto ok = on_nodes::broadcast(all, stage_, stage_, size, call.root);
    if (ok && !is_root) {
      move_bytes(to(0), stage_, size);
    }
    return ok;
  }
  std::byte* const gathered = stage_ + (size + 63) / 64 * 64;
  auto ok = on_nodes::fcollect(all, gathered, stage_, size);
  for (std::size_t member = 0; ok && member < places_.size(); ++member) {
    move_bytes(to(member), gathered + member * size, size);
  }
  return ok;
}

/// What goes to members of this node goes through the stages, in which each has a part. They make the same number of
/// pieces: `longest` is the longest of what any of them gives to another one.
Result<void> StagedOnNodes::move_here(Given& given, Taken& taken, std::size_t longest) {
  const Members all = members();
  const auto& here = team_.by_node()[static_cast<std::size_t>(team_.my_node())];
  const std::size_t most = room_ / here.size() / 64 * 64;
  const auto mine = static_cast<std::size_t>(std::find(here.begin(), here.end(), team_.me()) - here.begin());
  const auto piece = [most](auto span, std::size_t offset) {
    return span.subspan(std::min(offset, span.size()), piece_of(span.size(), offset, most));
  };
  const auto at_place = [&](auto& spans, std::size_t place) -> auto& {
    return spans[static_cast<std::size_t>(here[place])];
  };
  move_bytes(at_place(taken, mine).data(), at_place(given, mine).data(), at_place(given, mine).size());
  Result<void> ok;
  for (std::size_t offset = 0; ok && here.size() > 1 && offset < longest; offset += most) {
    for (std::size_t place = 0; place < here.size(); ++place) {
      const auto part = piece(at_place(given, place), offset);
      if (place != mine) {
        move_bytes(stage_ + place * most, part.data(), part.size());
        staged_bytes_ += part.size();
      }
    }
    ok = team_.sync_results_here();
    if (ok) {
      to_the_right(static_cast<int>(mine), static_cast<int>(here.size()), 1, [&](int at) {
        const auto place = static_cast<std::size_t>(at);
        const auto part = piece(at_place(taken, place), offset);
        move_bytes(part.data(), all.at(stage_, here[place]) + mine * most, part.size());
      });
      ok = team_.sync_results_here();
    }
  }
  for (std::size_t place = 0; place < here.size(); ++place) {
    at_place(given, place) = {};
    at_place(taken, place) = {};
  }
  return ok;
}

/// As ProcessGroup::alltoall() of all members.
Result<void> StagedOnNodes::send_all(Given& given, Taken& taken, std::size_t longest) {
  auto ok = move_here(given, taken, longest);
  return ok ? team_.everybody().alltoall(given, taken) : ok;
}

/// Each member's data goes to the buffers of those who take it.
Result<void> StagedOnNodes::move(const StagedCall& call) {
  const auto number = static_cast<std::size_t>(team_.size());
  Given given(number);
  Taken taken(number);
  const auto root = static_cast<std::size_t>(call.root);
  const bool is_root = call.root == team_.me();
  const bool scatters = call.kind == StagedCall::kScatter;
  const bool to_all = call.kind == StagedCall::kAllgather;
  for (std::size_t i = 0; i < number; ++i) {
    if (scatters ? is_root : to_all || i == root) {
      given[i] = span_of(call.from[scatters ? i : 0], call.bytes);
    }
    if (scatters ? i == root : to_all || is_root) {
      taken[i] = span_of(call.to[scatters ? 0 : i], call.bytes);
    }
  }
  const bool has_root = to_all || team_.node_of(call.root) == team_.my_node();
  return send_all(given, taken, has_root ? call.bytes : 0);
}

Result<void> StagedOnNodes::alltoall(const StagedCall& call) {
  const auto number = static_cast<std::size_t>(team_.size());
  BlockSizes sizes(call, team_.size());
  const void* const row = sizes.my_row();
  std::vector<void*> rows(number);
  for (std::size_t member = 0; member < number; ++member) {
    rows[member] = sizes.row(static_cast<int>(member));
  }
  StagedCall tell{.kind = StagedCall::kAllgather, .bytes = sizes.row_bytes(), .from = &row, .to = rows.data()};
  if (auto ok = make(tell, {}); !ok) {
    return ok;
  }
  if (auto ok = sizes.compare(team_.me()); !ok) {
    return ok;
  }
  Given given;
  Taken taken;
  for (std::size_t i = 0; i < number; ++i) {
    given.push_back(span_of(call.from[i], call.from_bytes[i]));
    taken.push_back(span_of(call.to[i], call.to_bytes[i]));
  }
  const bool aside = std::ranges::any_of(given, [&](const auto& from) {
    return std::ranges::any_of(taken, [&](const auto& to) { return share_bytes(from, to); });
  });
  ScratchBuffer copy;
  if (aside) {
    auto scratch = ScratchBuffer::allocate(std::accumulate(call.from_bytes, call.from_bytes + number, std::size_t{0}),
                                           "of an alltoall in place");
    if (!scratch) {
      return checked(Result<void>(team_.everybody().give_up("alltoall", scratch.error())));
    }
    copy = *std::move(scratch);
    std::byte* at = copy.data();
    for (auto& from : given) {
      move_bytes(at, from.data(), from.size());
      from = {at, from.size()};
      at += from.size();
    }
  }
  const auto is_here = [&](int member) { return team_.node_of(member) == team_.my_node(); };
  const auto longest = sizes.longest([&](int from, int to) { return is_here(from) && is_here(to); });
  return checked(send_all(given, taken, longest));
}

}  // namespace shmem
