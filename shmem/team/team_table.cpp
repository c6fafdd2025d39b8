// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_table.hpp"

#include <algorithm>
#include <bit>

namespace shmem {

Team* TeamTable::find(int handle) const {
  return handle >= 0 && handle < kMaxTeams ? teams_[static_cast<std::size_t>(handle)].get() : nullptr;
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

Team& TeamTable::add(const TeamMap& map, int slot, std::uint64_t count) {
  set_taken(slot, true);
  auto& team = teams_[static_cast<std::size_t>(slot)];
  team = std::make_unique<Team>(job_, map, slot, count);
  return *team;
}

Result<void> TeamTable::make_predefined() {
  const TeamMap everybody{0, 1, job_.size};
  Team& world = add(everybody, kWorldTeam, 0);
  add(everybody, kSharedTeam, 0);
  return equip_(world);
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

// A slot's words are never set back: a PE of an earlier team that is still looking at them must find them large enough.
// The new team goes on from the largest that any member's word stands at.
std::uint64_t TeamTable::agree_on_count(const TeamMap& map, int slot) const {
  std::uint64_t count = 0;
  for (int i = 0; i < map.size; ++i) {
    const auto& word = job_.team_sync(slot, map.pe(i)).round.value;
    count = std::max(count, word.load(std::memory_order_relaxed));
  }
  return count;
}

Result<int> TeamTable::split(Team& parent, const std::optional<TeamMap>& map) {
  // Everybody has finished what he did with the teams before.
  if (auto ok = parent.sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  Result<int> slot = map ? agree_on_slot(*map) : Result<int>(-1);
  std::uint64_t count = 0;
  if (map && slot) {
    count = agree_on_count(*map, *slot);
    TeamSync& mine = job_.team_sync(*slot, job_.me);
    // A member that reads this as its colleague's largest word computes the same maximum.
    publish(mine.round, count);
    mine.arrival.word[0].store(0, std::memory_order_relaxed);
    mine.arrival.word[1].store(0, std::memory_order_relaxed);
  }
  // Everybody has read the sets of slots and cleared the words.
  if (auto ok = parent.sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (!map || !slot) {
    return slot;
  }
  if (auto ok = equip_(add(*map, *slot, count)); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return slot;
}

Result<void> TeamTable::destroy(int handle, gba_device* port) {
  auto ok = find(handle)->dissolve(port);
  teams_[static_cast<std::size_t>(handle)].reset();
  set_taken(handle, false);
  return ok;
}

Result<void> TeamTable::destroy_all(gba_device* port) {
  // Teams that the program left are not collective any more here: their members may be at different ones. Only the
  // world is sure to be complete; the device takes the groups of the others back when this port is closed.
  for (int handle = kMaxTeams - 1; handle > kWorldTeam; --handle) {
    teams_[static_cast<std::size_t>(handle)].reset();
  }
  return find(kWorldTeam) != nullptr ? destroy(kWorldTeam, port) : Result<void>{};
}

}  // namespace shmem
