// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "shmem/team/local_team.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem {

Team& TeamTable::add(const TeamPlan& plan) {
  const auto index = static_cast<std::size_t>(plan.slot);
  // Acquire: pairs with remove() by another thread of this PE, which may have used the slot last.
  std::ignore = job_.metadata(job_.me).taken_teams[index / 64].load(std::memory_order_acquire);
  if (plan.world.size == plan.here.size) {
    teams_[index] = std::make_unique<LocalTeam>(job_, plan);
  } else {
    teams_[index] = std::make_unique<SpanningTeam>(job_, plan);
    // Relaxed: other threads only compare it with other ids.
    live_ids_[index].store(plan.id, std::memory_order_relaxed);
  }
  Team& team = *teams_[index];
  job_.core_state().team[index].write({plan.world.start, plan.world.stride, plan.world.size, team.me()});
  return team;
}

void TeamTable::remove(int slot) {
  const auto index = static_cast<std::size_t>(slot);
  teams_[index]->report();
  job_.core_state().team[index].write({});
  teams_[index].reset();
  live_ids_[index].store(0, std::memory_order_relaxed);
  slots_.set_taken(job_.me, slot, false);
}

namespace {

struct SharedTeamMaps {
  TeamMap here;
  TeamMap world;
};

/// The team of the PEs that share memory with PE `me` of this node. The members of a team are evenly spaced, so a node
/// whose PEs are not has several such teams.
SharedTeamMaps shared_team(const Nodes& nodes, int size, int me) {
  for (int first = 0;;) {
    const int start = nodes.world(first);
    const int stride = first + 1 < size ? nodes.world(first + 1) - start : 1;
    int end = first + 1;
    while (end < size && nodes.world(end) == start + (end - first) * stride) {
      ++end;
    }
    if (me < end) {
      const int pes = end - first;
      return {.here = {first, 1, pes}, .world = {start, pes > 1 ? stride : 1, pes}};
    }
    first = end;
  }
}

}  // namespace

Result<void> TeamTable::make_predefined() {
  const TeamMap here{0, 1, job_.size};
  const TeamMap world_map{0, 1, job_.world_size()};
  TeamParts nodes;
  if (job_.on_several_nodes()) {
    nodes =
        TeamParts(job_.nodes, world_map, [this](int pe) { return job_.nodes.node_of[static_cast<std::size_t>(pe)]; });
  }
  slots_.set_taken(job_.me, kWorldTeam, true);
  slots_.set_taken(job_.me, kSharedTeam, true);
  Team& world = add({.here = here, .world = world_map, .slot = kWorldTeam, .parts = std::move(nodes)});
  const SharedTeamMaps neighbours = shared_team(job_.nodes, job_.size, job_.me);
  Team& shared = add({.here = neighbours.here, .world = neighbours.world, .slot = kSharedTeam});
  shared.explain_no_gba("its PEs share memory");
  auto ok = equip_(world);
  shared.follow(world);
  return ok;
}

bool TeamTable::is_in_use(std::uint32_t id) const {
  return std::ranges::any_of(live_ids_, [id](const auto& live) { return live.load(std::memory_order_relaxed) == id; });
}

TeamPlan TeamTable::plan(Team& parent, const TeamMap& map) const {
  if (!job_.on_several_nodes()) {
    return {.here = map, .world = map};
  }
  // A slot is agreed on in the words of the parent's part, so no part of the new team goes beyond it.
  const auto place_of = [&](int pe) {
    return parent.spanning() != nullptr ? parent.spanning()->node_of(*parent.map().member(pe)) : 0;
  };
  TeamParts parts(job_.nodes, map, place_of);
  const int mine = parts.part_of(*map.member(job_.world_me()));
  const TeamMap here = map_on_node(job_.nodes, map, parts.members()[static_cast<std::size_t>(mine)]);
  return {.here = here, .world = map, .parts = std::move(parts)};
}

Result<void> TeamTable::offer_slot(Team& parent, const TeamMap& map) const {
  const int slot = slots_.reserve(map, 0, kMaxTeams);
  parent.view().mine().new_team = slot;
  if (slot >= 0) {
    parent.view().mine().new_count = slots_.last_count(map, slot);
    return {};
  }
  return fail(std::errc::no_buffer_space,
              fmt::format("shmem: no team slot is free on all {} PEs of the new team (a PE can be in {} teams; destroy "
                          "some)",
                          map.size, kMaxTeams));
}

namespace {

constexpr std::uint64_t kRepeated = std::uint64_t{1} << 32;

}  // namespace

std::uint64_t TeamTable::propose_id() {
  const TeamIds::Id id = ids_.next();
  return id.number | (id.repeated ? kRepeated : 0);
}

// The teams that have an id are known to their members only, and the PE that gave it need not be one. So once a PE
// repeats its ids, the members are asked.
Result<std::uint32_t> TeamTable::settle_id(Team& parent, const std::optional<TeamPlan>& plan, std::uint64_t proposed) {
  for (std::uint64_t tried = 0; (proposed & kRepeated) != 0; ++tried) {
    const auto id = static_cast<std::uint32_t>(proposed);
    const auto verdict = parent.vote(0, !plan || !is_in_use(id), parent.me() == 0 ? propose_id() : 0);
    if (!verdict) {
      return verdict.error();
    }
    if (verdict->willing) {
      break;
    }
    proposed = verdict->number;
    if (tried == ids_.own_ids()) {
      return fail(std::errc::no_buffer_space,
                  fmt::format("shmem: PE {} has given all its {} ids to teams that still exist (destroy some)",
                              parent.map().pe(0), ids_.own_ids()));
    }
  }
  return static_cast<std::uint32_t>(proposed);
}

Result<int> TeamTable::split(Team& parent, const SplitRequest& request) {
  // A sync: all members are done with earlier teams.
  if (auto ok = parent.agree_on_call(request.call); !ok) {
    return ok.error();
  }
  std::optional<TeamPlan> planned;
  Result<void> offered;
  if (request.refusal) {
    offered = *request.refusal;  // other PEs may know of no problem, and wait for this PE's vote
  } else if (request.map) {
    planned = plan(parent, *request.map);
  }
  const bool first = planned && planned->here.start == job_.me;
  if (first) {
    offered = offer_slot(parent, planned->here);
  }
  // The id of the parent's first PE is taken, and only teams on several nodes need one.
  const bool gives_id = parent.me() == 0 && parent.spanning() != nullptr;
  // A sync: after it the slots of all maps are known.
  const auto proposed = parent.agree_on_outcome(offered, gives_id ? propose_id() : 0);
  const auto id = proposed ? settle_id(parent, planned, *proposed) : proposed.error();
  if (!id) {
    if (first && offered) {
      slots_.give_back(planned->here, parent.view().mine().new_team);
    }
    return id.error();
  }
  if (planned) {
    const TeamMap& here = planned->here;
    const TeamSync& offer = parent.view().member(*parent.map_here().member(here.start));
    planned->slot = offer.new_team;
    planned->count = offer.new_count;
    slots_.clear(planned->slot, planned->count);
    job_.kernel_sync(job_.me).clear_team_pool(planned->slot);
  }
  // All members have cleared the words.
  if (auto ok = parent.sync_here(); !ok || !planned) {
    return ok ? Result<int>(-1) : ok.error();
  }
  planned->contexts = request.contexts;
  planned->id = *id;
  Team& made = add(*planned);
  if (auto ok = equip_(made); !ok) {
    return ok.error();
  }
  return made.slot();
}

Result<void> TeamTable::destroy(int slot) {
  Team& team = *find(slot);
  auto ok = team.end();
  remove(slot);
  return ok;
}

Result<void> TeamTable::destroy_all() {
  // Teams that the program did not destroy are not ended collectively: their members may be at different teams. Only
  // the world is known to be complete; the groups of the other teams are given back without a sync.
  for (int slot = static_cast<int>(teams_.size()) - 1; slot > kWorldTeam; --slot) {
    if (find(slot) != nullptr) {
      remove(slot);
    }
  }
  return find(kWorldTeam) != nullptr ? destroy(kWorldTeam) : Result<void>{};
}

}  // namespace shmem
