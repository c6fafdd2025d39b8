// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_table.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace shmem {

Team* TeamTable::find(int handle) const {
  const auto index = static_cast<std::size_t>(handle);  // a negative one becomes larger than all
  return index < teams_.size() ? teams_[index].get() : nullptr;
}

bool TeamTable::set_taken(int pe, int slot, bool taken) const {
  auto& word = job_.metadata(pe).taken_teams[static_cast<std::size_t>(slot) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  // Release and acquire: who takes a slot that was given back finds the words that its last team left there.
  const std::uint64_t before =
      taken ? word.fetch_or(bit, std::memory_order_acq_rel) : word.fetch_and(~bit, std::memory_order_release);
  return ((before & bit) != 0) != taken;
}

Team& TeamTable::add(const TeamMap& map, int slot, std::uint64_t count, int contexts, const TeamMap& world,
                     std::uint32_t id) {
  const auto index = static_cast<std::size_t>(slot);
  // Acquire: pairs with remove() by another thread of this PE, which may have had the slot last.
  std::ignore = job_.metadata(job_.me).taken_teams[index / 64].load(std::memory_order_acquire);
  teams_[index] = std::make_unique<Team>(job_, map, slot, count, contexts, world, id);
  Team& team = *teams_[index];
  job_.core_state().team[index].write({world.start, world.stride, world.size, team.me()});
  return team;
}

void TeamTable::remove(int slot) {
  const auto index = static_cast<std::size_t>(slot);
  teams_[index]->report();
  job_.core_state().team[index].write({});
  teams_[index].reset();
  set_taken(job_.me, slot, false);
}

namespace {

/// The PEs of this node by their numbers in the world, as a team.
Result<TeamMap> evenly_spaced(const Nodes& nodes, int size) {
  const int start = nodes.world(0);
  const TeamMap map{start, size > 1 ? nodes.world(1) - start : 1, size};
  for (int number = 0; number < size; ++number) {
    if (nodes.world(number) != map.pe(number)) {
      return fail(std::errc::not_supported, "shmem: the numbers of the PEs of " + nodes.host(start) +
                                                " are not evenly spaced (start PEs of a node one after another, or "
                                                "one on each node by turns)");
    }
  }
  return map;
}

}  // namespace

Result<void> TeamTable::make_predefined() {
  const TeamMap here{0, 1, job_.size};
  const auto neighbours = evenly_spaced(job_.nodes, job_.size);
  set_taken(job_.me, kWorldTeam, true);
  set_taken(job_.me, kSharedTeam, true);
  Team& world = add(here, kWorldTeam, 0, 0, {0, 1, job_.world_size()}, 0);
  if (!neighbours) {
    return tl::make_unexpected(neighbours.error());
  }
  Team& shared = add(here, kSharedTeam, 0, 0, *neighbours, 0);
  shared.explain_no_gba("its PEs share memory");
  auto ok = equip_(world);
  shared.follow(world);
  return ok;
}

// Unique among the teams that a PE is in: made of the number of the PE that gives it, and a number from 1 of its own,
// which comes again after 65,535 teams. The world's is 0.
std::uint32_t TeamTable::next_id() {
  const std::uint32_t own = ids_.fetch_add(1, std::memory_order_relaxed);
  return (static_cast<std::uint32_t>(job_.world_me()) & 0x3fff) << 16 | (own % 0xffff + 1);
}

bool TeamTable::try_to_reserve(const TeamMap& map, int slot) const {
  for (int i = 0; i < map.size; ++i) {
    if (!set_taken(map.pe(i), slot, true)) {
      give_back({map.start, map.stride, i}, slot);
      return false;
    }
  }
  return true;
}

void TeamTable::give_back(const TeamMap& map, int slot) const {
  for (int i = 0; i < map.size; ++i) {
    set_taken(map.pe(i), slot, false);
  }
}

// Threads of the members may be making other teams, of other parents, at this moment. Each slot goes to who takes it on
// all members first; one that two try at once may be left to neither of them.
int TeamTable::reserve_slot(const TeamMap& map) const {
  for (std::size_t word = 0; word < kMaxTeams / 64; ++word) {
    std::uint64_t taken = 0;
    for (int i = 0; i < map.size; ++i) {
      taken |= job_.metadata(map.pe(i)).taken_teams[word].load(std::memory_order_relaxed);
    }
    for (; taken != ~std::uint64_t{0}; taken |= taken + 1) {  // the lowest bit that is 0
      const int slot = static_cast<int>(word) * 64 + std::countr_one(taken);
      if (try_to_reserve(map, slot)) {
        return slot;
      }
    }
  }
  return -1;
}

Result<void> TeamTable::offer_slot(Team& parent, const TeamMap& map) const {
  const int slot = reserve_slot(map);
  parent.view().mine().new_team = slot;
  if (slot >= 0) {
    return {};
  }
  return fail(std::errc::no_buffer_space, "shmem: no team slot is free on all " + std::to_string(map.size) +
                                              " PEs of the new team (a PE can be in " + std::to_string(kMaxTeams) +
                                              " teams; destroy some)");
}

// The words that PEs wait for are never set back: a PE of an earlier team that is still looking at them must find them
// large enough. None is larger than the last barrier that its team entered, and the new team goes on from the largest
// that any member has been in.
std::uint64_t TeamTable::agree_on_count(const TeamMap& map, int slot) const {
  std::uint64_t count = 0;
  for (int i = 0; i < map.size; ++i) {
    const TeamSync& theirs = job_.team_sync(slot, map.pe(i));
    // One number for both kinds of calls.
    count =
        std::max({count, theirs.entered.load(std::memory_order_relaxed), theirs.calls.load(std::memory_order_relaxed)});
  }
  return count;
}

void TeamTable::clear_slot(int slot, std::uint64_t count) const {
  TeamSync& mine = job_.team_sync(slot, job_.me);
  // Relaxed: a sync of the parent is before the new team's first use of them. A member that reads this one as
  // its colleague's computes the same maximum.
  mine.entered.store(count, std::memory_order_relaxed);
  mine.left.store(count, std::memory_order_relaxed);
  mine.calls.store(count, std::memory_order_relaxed);
  mine.calls_over.store(count, std::memory_order_relaxed);
  job_.carried_words(slot, job_.me).finished.value.store(count, std::memory_order_relaxed);
  // Nobody has come: the earlier team may have ended in the middle of a barrier.
  mine.counter.value.store(count << kArrivalBits, std::memory_order_relaxed);
  mine.arrival.word[0].store(0, std::memory_order_relaxed);
  mine.arrival.word[1].store(0, std::memory_order_relaxed);
  job_.kernel_sync(job_.me).clear_team_pool(slot);
}

Result<int> TeamTable::split(Team& parent, const SplitRequest& request) {
  // A sync: everybody has finished what he did with the teams before.
  if (auto ok = parent.agree_on_call(request.call); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (request.refusal) {
    return tl::make_unexpected(*request.refusal);
  }
  std::optional<TeamMap> map;
  Result<void> offered;
  if (request.map) {
    if (auto here = members_here(job_.nodes, *request.map); here) {
      map = *here;
    } else {
      offered = tl::make_unexpected(here.error());
    }
  }
  const bool first = map && map->start == job_.me;
  if (first) {
    offered = offer_slot(parent, *map);
  }
  // A sync: the slots of all maps are known.
  const auto id = parent.agree_on_outcome(offered, next_id());
  if (!id) {
    if (first && offered) {
      give_back(*map, parent.view().mine().new_team);
    }
    return tl::make_unexpected(id.error());
  }
  int slot = -1;
  std::uint64_t count = 0;
  if (map) {
    slot = parent.view().member(*parent.map_here().member(map->start)).new_team;
    count = agree_on_count(*map, slot);
    clear_slot(slot, count);
  }
  // Everybody has cleared the words.
  if (auto ok = parent.sync_here(); !ok || !map) {
    return ok ? Result<int>(-1) : tl::make_unexpected(ok.error());
  }
  Team& made = add(*map, slot, count, request.contexts, *request.map, static_cast<std::uint32_t>(*id));
  if (auto ok = equip_(made); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return slot;
}

Result<void> TeamTable::destroy(int handle) {
  Team& team = *find(handle);
  auto ok = team.span() != nullptr ? team.sync() : Result<void>{};
  if (ok) {
    ok = team.dissolve();
  }
  remove(handle);
  return ok;
}

Result<void> TeamTable::destroy_all() {
  // Teams that the program left are not collective any more here: their members may be at different ones. Only the
  // world is sure to be complete; the groups of the others go back without ceremony.
  for (int handle = static_cast<int>(teams_.size()) - 1; handle > kWorldTeam; --handle) {
    if (find(handle) != nullptr) {
      remove(handle);
    }
  }
  return find(kWorldTeam) != nullptr ? destroy(kWorldTeam) : Result<void>{};
}

}  // namespace shmem
