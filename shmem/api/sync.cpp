// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.9: barrier = quiet, then sync. On a core of a kernel the same names mean all cores of all
// members.
#include "shmem/api/far.hpp"
#include "shmem/api/gathering.hpp"
#include "shmem/api/kernel_core.hpp"

using shmem::Context;
using shmem::Team;
namespace api = shmem::api;

namespace {

void sync_or_end(const Context& context, Team& team) {
  if (auto ok = team.sync(); !ok) {
    context.end_job(EXIT_FAILURE, ok.error().text);
  }
}

void sync_world(const char* call) {
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    api::sync_team_on(*core, call, SHMEM_TEAM_WORLD);
    return;
  }
  Context& context = api::running(call);
  Team& world = *context.teams().find(shmem::kWorldTeam);
  api::check_call(context, world, call);
  sync_or_end(context, world);
}

void sync_active_set(const char* call, const api::ActiveSet& set) {
  const Context& context = api::running_on_host(call);
  api::on_active_set(call, set, [&context, call](const shmem::Members& members) {
    if (context.checker() != nullptr) [[unlikely]] {
      api::check_members_call(members, call, nullptr, {});
    }
    return members.meet();
  });
}

}  // namespace

SHMEM_ROUTINE(void, barrier_all, (void)) {
  api::quiet();
  sync_world("shmem_barrier_all");
}

SHMEM_ROUTINE(void, sync_all, (void)) {
  sync_world("shmem_sync_all");
}

SHMEM_ROUTINE(int, team_sync, (shmem_team_t team)) {
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    return api::sync_team_on(*core, "shmem_team_sync", team);
  }
  Context& context = api::running("shmem_team_sync");
  Team* found = context.teams().find(team);
  if (found == nullptr) {
    return api::refuse_team("shmem_team_sync", team);
  }
  api::check_call(context, *found, "shmem_team_sync");
  auto ok = found->sync();
  return ok ? 0 : api::report_loudly(ok.error());
}

SHMEM_ROUTINE(void, barrier, (int PE_start, int logPE_stride, int PE_size, long* pSync)) {
  api::quiet();
  sync_active_set("shmem_barrier", {PE_start, logPE_stride, PE_size, pSync});
}

SHMEM_ROUTINE(void, sync, (int PE_start, int logPE_stride, int PE_size, long* pSync)) {
  sync_active_set("shmem_sync", {PE_start, logPE_stride, PE_size, pSync});
}

extern "C" void shmemx_team_barrier(shmem_team_t team) noexcept {
  api::quiet();
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    api::sync_team_on(*core, "shmemx_team_barrier", team);
    return;
  }
  Context& context = api::running("shmemx_team_barrier");
  Team& found = api::valid_team(context, "shmemx_team_barrier", team);
  api::check_call(context, found, "shmemx_team_barrier");
  sync_or_end(context, found);
}
