// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/death_watch.hpp"

#include "shmem/layout/peers.hpp"
#include "shmem/net/network.hpp"

namespace shmem::api {
namespace {

/// The processes that one look checks in the slower way, which also finds zombies.
constexpr int kMostCloseLooks = 16;

std::string name_of_dead(const Runtime& runtime, int pe) {
  const Job& job = runtime.job();
  const int here = job.nodes.number(pe);
  return here >= 0 ? describe_pe(job, here) : fmt::format("PE {} (on {})", pe, job.nodes.host(pe));
}

}  // namespace

bool DeathWatch::has_died(const Runtime& runtime, const Team& home, int pe, bool closely) {
  const Job& job = runtime.job();
  const int here = job.nodes.number(pe);
  if (here < 0) {
    return job.network->has_lost(pe);
  }
  if (was_replaced(job, here, home.view().admissions())) {
    return true;
  }
  return closely ? is_dead_or_zombie(job, here) : is_dead(job, here);
}

std::string DeathWatch::trouble(Runtime& runtime) {
  if (!runtime.survives()) {
    return "";
  }
  Team& home = runtime.teams().home();
  if (home.is_being_shrunk()) {
    return "a PE has called shmemx_team_shrink";
  }
  const int size = home.size();
  const int first = next_ % size;
  next_ = first + kMostCloseLooks;
  for (int i = 0; i < size; ++i) {
    const int pe = home.map().pe((first + i) % size);
    if (has_died(runtime, home, pe, i < kMostCloseLooks) && (!needs_ || needs_(pe))) {
      return fmt::format("{} has died, and may be the PE that it waits for", name_of_dead(runtime, pe));
    }
  }
  return "";
}

}  // namespace shmem::api
