// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/set_teams.hpp"

namespace shmem {

void SetTeams::announce(bool one_caller) const {
  // Relaxed: a barrier of the bootstrap precedes the loads in settle().
  job_.metadata(job_.me).one_caller.store(one_caller ? 1 : 0, std::memory_order_relaxed);
}

void SetTeams::settle() {
  enabled_ = true;
  for (int pe = 0; pe < job_.size; ++pe) {
    enabled_ = enabled_ && job_.metadata(pe).one_caller.load(std::memory_order_relaxed) != 0;
  }
}

const SetTeams::Entry* SetTeams::search(const SetName& name) {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : last_ = &found->second;
}

Result<const SetTeams::Entry*> SetTeams::create(const SetName& name, TeamPlan plan,
                                                const std::function<Result<void>()>& sync) {
  // Relaxed: a sync of the members separates the store from the loads, and another one precedes the next store.
  PeMetadata& offer = job_.metadata(plan.here.start);
  if (plan.here.start == job_.me) {
    const int slot = slots_.reserve(plan.here, kMaxTeams, kSetTeams);
    offer.set_team.store(slot, std::memory_order_relaxed);
    offer.set_count.store(slot >= 0 ? slots_.last_count(plan.here, slot) : 0, std::memory_order_relaxed);
  }
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  plan.slot = offer.set_team.load(std::memory_order_relaxed);
  if (plan.slot >= 0) {
    plan.count = offer.set_count.load(std::memory_order_relaxed);
    slots_.clear(plan.slot, plan.count);
  }
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  std::unique_ptr<LocalTeam> team;
  if (plan.slot >= 0) {
    team = std::make_unique<LocalTeam>(job_, plan);
    if (auto ok = equip_(*team); !ok) {
      return ok.error();
    }
  }
  const auto made = entries_.try_emplace(name, Entry{name, std::move(team)});
  return last_ = &made.first->second;
}

void SetTeams::clear() {
  last_ = nullptr;
  for (const auto& [name, entry] : entries_) {
    if (entry.team) {
      entry.team->report();
    }
  }
  entries_.clear();
}

}  // namespace shmem
