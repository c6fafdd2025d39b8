// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "shmem/team/local_team.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem {

namespace {

void end_of(Team*& owned) {
  const std::unique_ptr<Team> team(std::exchange(owned, nullptr));
}

}  // namespace

TeamTable::~TeamTable() {
  std::for_each(teams_.begin(), teams_.end(), end_of);
}

Team& TeamTable::add(const TeamPlan& plan) {
  const auto index = static_cast<std::size_t>(plan.slot);
  // Acquire: pairs with remove() by another thread of this PE, which may have used the slot last.
  std::ignore = job_.metadata(job_.me).taken_teams[index / 64].load(std::memory_order_acquire);
  if (plan.world.size == plan.here.size) {
    teams_[index] = std::make_unique<LocalTeam>(job_, plan).release();
  } else {
    teams_[index] = std::make_unique<SpanningTeam>(job_, plan).release();
    // Relaxed: other threads only compare it with other ids.
    live_ids_[index].store(plan.id, std::memory_order_relaxed);
  }
  Team& team = *teams_[index];
  if (!plan.world.is_list()) {  // cores know no lists
    job_.core_state().team[index].write({plan.world.start, plan.world.stride, plan.world.size, team.me()});
  }
  return team;
}

void TeamTable::remove(int slot) {
  const auto index = static_cast<std::size_t>(slot);
  teams_[index]->report();
  const bool failed = teams_[index]->has_failed();
  const TeamMap here = teams_[index]->map_here();
  job_.core_state().team[index].write({});
  end_of(teams_[index]);
  live_ids_[index].store(0, std::memory_order_relaxed);
  if (failed) {
    return;  // a member that hangs may still store to words of the slot, so no other team uses it
  }
  if (!here.is_list()) {
    slots_.set_taken(job_.me, slot, false);
    return;
  }
  // The last one gives it back on all PEs. Acquire and release: all of them have ended the team.
  auto& ended = job_.team_sync(slot, rows_of(here).start).survival.ended;
  if (ended.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint64_t>(here.size)) {
    slots_.give_back(slots_.owners_of(here), slot);
  }
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

namespace {

Error no_free_slot(const TeamMap& map) {
  return fail(std::errc::no_buffer_space,
              fmt::format("shmem: no team slot is free on all {} PEs of the new team (a PE can be in {} teams; destroy "
                          "some)",
                          map.size, kMaxTeams));
}

}  // namespace

Result<void> TeamTable::offer_slot(Team& parent, const TeamMap& map) const {
  const int slot = slots_.reserve(slots_.owners_of(map), 0, kMaxTeams);
  parent.view().mine().new_team = slot;
  if (slot >= 0) {
    if (map.is_list()) {
      slots_.prepare(map, slot);  // its words may be those of PEs that are not members
    }
    parent.view().mine().new_count = slots_.last_count(rows_of(map), slot);
    return {};
  }
  return no_free_slot(map);
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
      slots_.give_back(slots_.owners_of(planned->here), parent.view().mine().new_team);
    }
    return id.error();
  }
  if (planned) {
    const TeamMap& here = planned->here;
    const TeamSync& offer = parent.view().member(*parent.map_here().member(here.start));
    planned->slot = offer.new_team;
    planned->count = offer.new_count;
    if (!here.is_list()) {
      slots_.clear(planned->slot, planned->count);
    }
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

TeamMap TeamTable::map_of(std::vector<int> pes) {
  const int start = pes.front();
  const int size = static_cast<int>(pes.size());
  const int stride = size > 1 ? pes[1] - start : 1;
  const TeamMap even{start, stride, size};
  for (int i = 0; i < size; ++i) {
    if (pes[static_cast<std::size_t>(i)] != even.pe(i)) {
      const std::lock_guard lock(lists_mutex_);
      return {start, 0, size, lists_.insert(std::move(pes)).first->data()};
    }
  }
  return even;
}

TeamMap TeamTable::part_of(const TeamMap& parent, int start, int stride, int size) {
  if (!parent.is_list()) {
    // With one PE the stride has no meaning, whatever its size.
    return {parent.pe(start), parent.stride * (size > 1 ? stride : 1), size};
  }
  std::vector<int> pes;
  for (int i = 0; i < size; ++i) {
    pes.push_back(parent.pe(start + i * stride));
  }
  return map_of(std::move(pes));
}

TeamPlan TeamTable::plan_of_rest(Team& team, const std::vector<int>& members) {
  std::vector<int> pes;
  std::vector<int> here;
  SpanningTeam* const spanning = team.spanning();
  for (const int member : members) {
    const int pe = team.map().pe(member);
    pes.push_back(pe);
    if (spanning == nullptr || spanning->node_of(member) == spanning->my_node()) {
      here.push_back(job_.nodes.number(pe));
    }
  }
  TeamPlan plan{.here = map_of(std::move(here)), .world = map_of(std::move(pes))};
  if (spanning != nullptr) {
    const auto part_of = [&](int pe) { return spanning->node_of(*team.map().member(pe)); };
    plan.parts = TeamParts(job_.nodes, plan.world, part_of, TeamParts::Spacing::kAny);
  }
  return plan;
}

Result<int> TeamTable::agree_on_slot(Survivors& survivors, const std::vector<int>& left_here, const TeamMap& here,
                                     Admits admits) {
  const TeamMap owners = admits == Admits::kYes ? TeamMap{0, 1, job_.size} : slots_.owners_of(here);
  const auto reserve = [&] {
    const int reserved = slots_.reserve(owners, 0, kMaxTeams);
    if (reserved < 0) {
      return reserved;
    }
    if (admits == Admits::kNo) {
      slots_.prepare(here, reserved);
      return reserved;
    }
    std::vector<int> left;
    for (int i = 0; i < here.size; ++i) {
      left.push_back(here.pe(i));
    }
    admission_.write(reserved, left, admission_.waiting());
    slots_.prepare(map_of(admission_.read(reserved)), reserved);
    return reserved;
  };
  return survivors.agree_on_slot(left_here, reserve, [&](int reserved) { slots_.give_back(owners, reserved); });
}

Result<int> TeamTable::regroup(Team& team, Admits admits) {
  std::uint32_t id = 0;
  while (team.spanning() != nullptr && (id == 0 || is_in_use(id))) {
    id = ids_.next().number;  // a PE repeats its ids after so many teams that a member does not have such an old one
  }
  Survivors& survivors = team.survivors();
  const auto left = survivors.agree(id);
  if (!left) {
    return left.error();
  }
  if (&team == &home() && team.spanning() == nullptr) {
    admission_.give_up_late(team);
  }
  TeamPlan plan = plan_of_rest(team, left->members);
  plan.id = left->id;
  std::vector<int> left_here;
  for (int i = 0; i < plan.here.size; ++i) {
    left_here.push_back(*team.map_here().member(plan.here.pe(i)));
  }
  const auto slot = agree_on_slot(survivors, left_here, plan.here, admits);
  if (!slot) {
    return slot.error();
  }
  team.retire({std::errc::owner_dead,
               fmt::format("shmem: PE {}: team {} was shrunk: use the new team", job_.world_me(), team.slot())});
  if (*slot < 0) {
    return no_free_slot(plan.here);
  }
  plan.slot = *slot;
  if (admits == Admits::kYes) {
    plan.here = plan.world = map_of(admission_.read(*slot));
    admission_.tell(*slot);
  }
  return add_what_is_left(team, std::move(plan));
}

Result<int> TeamTable::shrink(Team& team) {
  return regroup(team, Admits::kNo);
}

Result<int> TeamTable::grow(Team& team, int processes) {
  if (auto ok = admission_.await(team, processes, job_.options.bootstrap_timeout); !ok) {
    return ok.error();
  }
  return regroup(team, Admits::kYes);
}

void TeamTable::make_lost() {
  const TeamMap all{0, 1, job_.size};
  for (const int slot : {kWorldTeam, kSharedTeam}) {
    slots_.set_taken(job_.me, slot, true);
    add({.here = all, .world = all, .slot = slot})
        .retire({std::errc::owner_dead,
                 fmt::format("shmem: PE {}: this process has taken the place of one that has died, and is not in team "
                             "{}: call shmemx_team_grow",
                             job_.world_me(), slot)});
  }
}

Result<int> TeamTable::join() {
  const auto slot = admission_.wait(job_.options.bootstrap_timeout);
  if (!slot) {
    return slot;
  }
  const TeamMap map = map_of(admission_.read(*slot));
  return add_what_is_left(home(), {.here = map, .world = map, .slot = *slot});
}

int TeamTable::add_what_is_left(const Team& team, TeamPlan plan) {
  const int slot = plan.slot;
  job_.kernel_sync(job_.me).clear_team_pool(slot);
  // Relaxed: the slot was read with acquire after the number was stored.
  plan.count = SyncView(job_, plan.here, slot).mine().entered.load(std::memory_order_relaxed);
  Team& made = add(plan);
  if (home_ == team.slot()) {
    home_ = slot;
  }
  // The members have agreed, so this one has the new team like the others, even if another one has died since.
  if (auto ok = equip_(made); !ok) {
    made.retire(ok.error());
  }
  return slot;
}

Result<void> TeamTable::destroy(int slot) {
  Team& team = *find(static_cast<std::size_t>(slot));
  auto ok = team.end();
  remove(slot);
  return ok;
}

Result<void> TeamTable::destroy_all() {
  // Teams that the program did not destroy are not ended collectively: their members may be at different teams. Only
  // the home is known to be complete; the groups of the other teams are given back without a sync.
  for (int slot = kMaxTeams - 1; slot >= kWorldTeam; --slot) {
    if (slot != home_ && find(static_cast<std::size_t>(slot)) != nullptr) {
      remove(slot);
    }
  }
  return find(static_cast<std::size_t>(home_)) != nullptr ? destroy(home_) : Result<void>{};
}

}  // namespace shmem
