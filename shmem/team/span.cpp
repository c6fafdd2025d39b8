// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/span.hpp"

#include "shmem/team/peers.hpp"

namespace shmem {
namespace {

/// Two groups may have the same PEs.
constexpr std::uint32_t kAmongLeaders = std::uint32_t{1} << 31;

/// What a leader leaves to its node between two meetings.
enum Outcome : std::uint32_t { kDone, kFailed };

std::vector<int> members_of(const TeamMap& map) {
  std::vector<int> pes;
  for (int i = 0; i < map.size; ++i) pes.push_back(map.pe(i));
  return pes;
}

}  // namespace

Result<TeamMap> members_here(const Nodes& nodes, const TeamMap& world) {
  if (!nodes.several()) return world;
  TeamMap here;
  int last = 0;
  for (int member = 0; member < world.size; ++member) {
    const int number = nodes.number(world.pe(member));
    if (number < 0) continue;
    if (here.size == 0) {
      here.start = number;
    } else if (here.size == 1) {
      here.stride = number - here.start;
    } else if (number - last != here.stride) {
      return fail(std::errc::not_supported,
                  "shmem: the members of a new team are not evenly spaced among the PEs of " +
                      nodes.host(world.pe(member)) +
                      " (start PEs of a node one after another, or one on each node by turns)");
    }
    last = number;
    ++here.size;
  }
  return here;
}

Span::Span(const Job& job, const TeamMap& world, const SyncView& here, std::uint32_t id, int slot)
    : job_(job),
      world_(world),
      here_(here),
      id_(id),
      everybody_(*job.network, members_of(world), world.member(job.world_me()).value_or(0), id),
      slot_(slot) {
  std::vector<int> place(static_cast<std::size_t>(job.nodes.count), -1);  // among the team's nodes
  std::vector<std::vector<int>> members;                                  // by node
  for (const int pe : members_of(world)) {
    const int node = job.nodes.node_of[static_cast<std::size_t>(pe)];
    int& at = place[static_cast<std::size_t>(node)];
    if (at < 0) {
      at = nodes();
      if (node == job.nodes.mine) my_node_ = at;
      firsts_.push_back(pe);
      members.emplace_back();
    }
    members[static_cast<std::size_t>(at)].push_back(pe);
  }
  for (const auto& theirs : members) even_ = even_ && theirs.size() == members.front().size();
  if (!leads() && !even_) return;
  std::vector<int> at_my_place;
  for (const auto& theirs : members) at_my_place.push_back(theirs[static_cast<std::size_t>(here.me())]);
  // The same number for all of them: no PE is in two.
  group_ = std::make_unique<LeaderGroup>(*job.network, std::move(at_my_place), my_node_, id | kAmongLeaders);
}

Result<void> Span::by_leader(const Meet& meet, const std::function<Result<void>()>& work) {
  if (auto ok = meet(); !ok) return ok;
  std::uint32_t& outcome = here_.member(0).span.outcome;
  Result<void> done;
  if (leads()) {
    done = work();
    outcome = done ? kDone : kFailed;
  }
  if (auto ok = meet(); !ok) return done ? ok : done;
  if (!done || outcome == kDone) return done;
  return fail(std::errc::host_unreachable,
              "shmem: PE " + std::to_string(job_.world_me()) + ": " +
                  describe_pe(job_, job_.nodes.number(firsts_[static_cast<std::size_t>(my_node_)])) +
                  ", which speaks for this node, could not meet the other nodes; it says why");
}

Span::Ballot Span::count_here() const {
  const SpanWords& first = here_.member(0).span;
  Ballot all{first.digest, first.willing, first.number, -1};
  for (int i = 1; i < here_.size() && all.other < 0; ++i) {
    const SpanWords& theirs = here_.member(i).span;
    if (theirs.digest != first.digest || theirs.willing == 0) all.other = job_.nodes.world(here_.pe(i));
    all.willing = all.willing & theirs.willing;
  }
  if (first.willing == 0) all.other = firsts_[static_cast<std::size_t>(my_node_)];
  return all;
}

Result<Verdict> Span::count_all(const Ballot& here) {
  const auto all = group_->tell_all(here);
  if (!all) return tl::make_unexpected(all.error());
  Verdict verdict{.number = all->front().number};
  for (std::size_t node = 0; node < all->size(); ++node) {
    const Ballot& theirs = (*all)[node];
    const bool alike = theirs.digest == all->front().digest && (theirs.other < 0 || theirs.willing == 0);
    verdict.alike = verdict.alike && alike;
    verdict.willing = verdict.willing && theirs.willing != 0;
    if (verdict.other < 0 && theirs.other >= 0) verdict.other = static_cast<int>(theirs.other);
    if (verdict.other < 0 && !alike) verdict.other = firsts_[node];
  }
  return verdict;
}

Result<Verdict> Span::vote(const Meet& meet, std::uint64_t digest, bool willing, std::uint64_t number) {
  SpanWords& mine = here_.mine().span;
  mine.digest = digest;
  mine.willing = willing ? 1 : 0;
  mine.number = number;
  SpanWords& first = here_.member(0).span;
  const auto ok = by_leader(meet, [&]() -> Result<void> {
    const auto verdict = count_all(count_here());
    if (!verdict) return tl::make_unexpected(verdict.error());
    first.alike = verdict->alike ? 1 : 0;
    first.all_willing = verdict->willing ? 1 : 0;
    first.other = verdict->other;
    first.given = verdict->number;
    return {};
  });
  if (!ok) return tl::make_unexpected(ok.error());
  return Verdict{first.alike != 0, first.all_willing != 0, static_cast<int>(first.other), first.given};
}

}  // namespace shmem
