// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_table.hpp"

#include <algorithm>
#include <bit>

namespace shmem {

Team* TeamTable::find(int handle) const {
  const auto index = static_cast<std::size_t>(handle);  // a negative one becomes larger than all
  return index < teams_.size() ? teams_[index].get() : nullptr;
}

void TeamTable::set_taken(int slot, bool taken) const {
  auto& word = job_.metadata(job_.me).taken_teams[static_cast<std::size_t>(slot) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  // Relaxed: others read it between two syncs of the parent, and it changes only outside of them.
  if (taken) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

Team& TeamTable::add(const TeamMap& map, int slot, std::uint64_t count, int contexts) {
  const auto index = static_cast<std::size_t>(slot);
  teams_.resize(std::max(teams_.size(), index + 1));
  teams_[index] = std::make_unique<Team>(job_, map, slot, count, contexts);
  set_taken(slot, true);
  Team& team = *teams_[index];
  job_.core_state().team[index].write({map.start, map.stride, map.size, team.me()});
  return team;
}

void TeamTable::remove(int slot) {
  const auto index = static_cast<std::size_t>(slot);
  teams_[index]->report();
  job_.core_state().team[index].write({});
  teams_[index].reset();
  set_taken(slot, false);
}

Result<void> TeamTable::make_predefined() {
  const TeamMap everybody{0, 1, job_.size};
  Team& world = add(everybody, kWorldTeam, 0, 0);
  Team& shared = add(everybody, kSharedTeam, 0, 0);
  shared.explain_no_gba("its PEs share memory");
  auto ok = equip_(world);
  shared.follow(world);
  return ok;
}

Result<int> TeamTable::agree_on_slot(const TeamMap& map) const {
  for (std::size_t word = 0; word < kMaxTeams / 64; ++word) {
    std::uint64_t taken = 0;
    for (int i = 0; i < map.size; ++i) {
      taken |= job_.metadata(map.pe(i)).taken_teams[word].load(std::memory_order_relaxed);
    }
    if (taken != ~std::uint64_t{0}) {
      return static_cast<int>(word) * 64 + std::countr_one(taken);
    }
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
    const auto& entered = job_.team_sync(slot, map.pe(i)).entered;
    count = std::max(count, entered.load(std::memory_order_relaxed));
  }
  return count;
}

void TeamTable::clear_slot(int slot, std::uint64_t count) const {
  TeamSync& mine = job_.team_sync(slot, job_.me);
  // Relaxed: the second sync of the parent is before the new team's first use of them. A member that reads this one as
  // its colleague's computes the same maximum.
  mine.entered.store(count, std::memory_order_relaxed);
  mine.left.store(count, std::memory_order_relaxed);
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
  const auto& map = request.map;
  const Result<int> slot = map ? agree_on_slot(*map) : Result<int>(-1);
  std::uint64_t count = 0;
  if (map && slot) {
    count = agree_on_count(*map, *slot);
    clear_slot(*slot, count);
  }
  // A sync: everybody has read the sets of slots and cleared the words.
  const Result<void> mine = slot ? Result<void>() : tl::make_unexpected(slot.error());
  if (auto ok = parent.agree_on_outcome(mine); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (!map) {
    return -1;
  }
  if (auto ok = equip_(add(*map, *slot, count, request.contexts)); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return slot;
}

Result<void> TeamTable::destroy(int handle) {
  auto ok = find(handle)->dissolve();
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
