// SPDX-License-Identifier: Apache-2.0
// What the members of a spanning team on one node do before and after the work of their leader.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "shmem/layout/peers.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem {
namespace {

/// What a leader stores for its node between two syncs.
enum Outcome : std::uint32_t { kDone, kFailed };

}  // namespace

std::uint64_t SpanningTeam::number_of(const EagerChannel::Given& given) {
  std::uint64_t number = 0;
  std::memcpy(&number, given.data, sizeof number);
  return number;
}

Result<std::uint64_t> SpanningTeam::gather_least_here(std::uint64_t mine) {
  EagerChannel::Numbers numbers{mine};
  if (map_.size > 1 && !eager_.least(numbers, /*for_all=*/false)) {
    return eager_.error();
  }
  return numbers.front();
}

Result<void> SpanningTeam::gather_here(std::uint64_t mine, std::span<std::uint64_t> all) {
  if (eager_.levels() != nullptr) {
    return gather_in_groups(mine, all);
  }
  if (leads()) {
    all.front() = mine;
  }
  if (map_.size == 1) {
    return {};
  }
  if (!eager_.begin() || (!leads() && !eager_.give(&mine, sizeof mine))) {
    return eager_.error();
  }
  for (int member = 1; leads() && member < map_.size; ++member) {
    const auto theirs = eager_.take(member);
    if (!theirs) {
      return eager_.error();
    }
    all[static_cast<std::size_t>(member)] = number_of(theirs);
  }
  eager_.end(leads() ? EagerChannel::Begun::kThis : EagerChannel::Begun::kUnknown);
  return {};
}

/// In two calls: the leader of each group takes the numbers of its group, and gives them.
Result<void> SpanningTeam::gather_in_groups(std::uint64_t mine, std::span<std::uint64_t> all) {
  const NeighbourLevels& levels = *eager_.levels();
  const NeighbourLevels::Group group = levels.group(0);
  std::array<std::uint64_t, NeighbourLevels::kMostInGroup> numbers{};
  std::size_t count = 0;
  bool ok = eager_.begin() && eager_.give(&mine, sizeof mine);
  for (int member = group.begin; ok && levels.leads_unit(1) && member < group.end; ++member) {
    const auto theirs = eager_.take(member);
    ok = static_cast<bool>(theirs);
    numbers[count++] = ok ? number_of(theirs) : 0;
  }
  if (ok) {
    eager_.end(EagerChannel::Begun::kUnknown);
    ok = eager_.begin() && eager_.give(numbers.data(), count * sizeof mine);
  }
  for (int unit = 0; ok && leads() && unit < levels.units(1); ++unit) {
    const auto theirs = eager_.take(levels.first(1, unit));
    ok = static_cast<bool>(theirs);
    if (ok) {
      std::memcpy(&all[static_cast<std::size_t>(levels.first(1, unit))], theirs.data, theirs.size);
    }
  }
  if (!ok) {
    return eager_.error();
  }
  eager_.end(leads() ? EagerChannel::before(1) : EagerChannel::Begun::kUnknown);
  return {};
}

Error SpanningTeam::leader_failed() const {
  const int leader = job_.nodes.number(firsts_[static_cast<std::size_t>(my_node_)]);
  return fail(std::errc::host_unreachable,
              fmt::format("shmem: PE {}: {}, the leader of this node, could not reach the other nodes; see its message",
                          job_.world_me(), describe_pe(job_, leader)));
}

Result<std::uint64_t> SpanningTeam::release_here(const Result<void>& done, std::uint64_t number,
                                                 EagerChannel::Begun begun) {
  if (map_.size > 1) {
    // No bytes: the work failed.
    if (!eager_.begin() || (leads() && !eager_.give(&number, done ? sizeof number : 0))) {
      return done ? eager_.error() : done.error();
    }
    if (!leads()) {
      const auto given = eager_.take(0);
      if (!given) {
        return eager_.error();
      }
      if (given.size == 0) {
        eager_.end(EagerChannel::Begun::kUnknown);
        return leader_failed();
      }
      number = number_of(given);
    }
    eager_.end(begun);
  }
  if (!done) {
    return done.error();
  }
  return number;
}

Result<void> SpanningTeam::sync_results_here(const Result<void>& mine) {
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const auto failed = gather_least_here(mine ? kNone : static_cast<std::uint64_t>(view_.me()));
  if (!failed) {
    return mine ? failed.error() : mine;
  }
  Result<void> all = mine;
  if (leads() && all && *failed != kNone) {
    all = fail(
        std::errc::host_unreachable,
        fmt::format("shmem: PE {}: member {} of the team on this node could not reach the other nodes; see its message",
                    job_.world_me(), *failed));
  }
  const auto released = release_here(all);
  if (!mine || released) {
    return mine;
  }
  return released.error();
}

Result<void> SpanningTeam::by_leader(const std::function<Result<void>()>& work) {
  if (auto ok = sync_here(); !ok) {
    return ok;
  }
  std::uint32_t& outcome = view_.member(0).node_vote.outcome;
  Result<void> done;
  if (leads()) {
    done = work();
    outcome = done ? kDone : kFailed;
  }
  if (auto ok = sync_here(); !ok) {
    return done ? ok : done;
  }
  if (!done || outcome == kDone) {
    return done;
  }
  return leader_failed();
}

}  // namespace shmem
