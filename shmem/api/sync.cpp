// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.10: barrier = quiet, then sync. On a core of a kernel the calls synchronise all cores of all
// members.
#include "shmem/api/gathering.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/api/ordering.hpp"

using shmem::Runtime;
using shmem::Team;
namespace api = shmem::api;

namespace {

/// Not inlined, so that a barrier without an error saves no registers for it.
[[noreturn, gnu::cold, gnu::noinline]] void end_with(const Runtime& runtime, const shmem::Result<void>& result) {
  runtime.end_job(result.error());
}

}  // namespace

void api::sync_world(const char* call) {
  if (shmemx_core_t* core = current_core(); core != nullptr) [[unlikely]] {
    sync_team_on(*core, call, SHMEM_TEAM_WORLD);
    return;
  }
  Runtime& runtime = running(call);
  Team& world = *runtime.teams().find(shmem::kWorldTeam);
  check_call(runtime, world, call);
  if (const auto ok = world.sync(); !ok) [[unlikely]] {
    end_with(runtime, ok);
  }
}

namespace {

void sync_active_set(const char* call, const api::ActiveSet& set) {
  Runtime& runtime = api::running_on_host(call);
  if (Team* team = api::team_of(runtime, set); team != nullptr) [[likely]] {
    if (auto ok = team->sync(); !ok) [[unlikely]] {
      api::SetCall::fail(runtime, call, ok.error());
    }
    return;
  }
  api::on_active_set(call, set, [&runtime, call](const shmem::Members& members) {
    if (runtime.checker() != nullptr) [[unlikely]] {
      api::check_members_call(members, call, nullptr, {});
    }
    return members.sync();
  });
}

}  // namespace

SHMEM_ROUTINE(void, barrier_all, (void)) try {
  api::quiet_before_sync_of_all();
  api::sync_world("shmem_barrier_all");
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, sync_all, (void)) try { api::sync_world("shmem_sync_all"); }
SHMEM_CATCH(void)

SHMEM_ROUTINE(int, team_sync, (shmem_team_t team)) try {
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    return api::sync_team_on(*core, "shmem_team_sync", team);
  }
  Runtime& runtime = api::running("shmem_team_sync");
  Team* found = api::find_team(runtime, team);
  if (found == nullptr) {
    return api::refuse_team("shmem_team_sync", team);
  }
  api::check_call(runtime, *found, "shmem_team_sync");
  auto ok = found->sync();
  return ok ? 0 : api::report_loudly(ok.error());
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(void, barrier, (int PE_start, int logPE_stride, int PE_size, long* pSync)) try {
  api::quiet();
  sync_active_set("shmem_barrier", {PE_start, logPE_stride, PE_size, pSync});
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, sync, (int PE_start, int logPE_stride, int PE_size, long* pSync)) try {
  sync_active_set("shmem_sync", {PE_start, logPE_stride, PE_size, pSync});
}
SHMEM_CATCH(void)

extern "C" void shmemx_team_barrier(shmem_team_t team) noexcept try {
  api::quiet();
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    api::sync_team_on(*core, "shmemx_team_barrier", team);
    return;
  }
  Runtime& runtime = api::running("shmemx_team_barrier");
  Team& found = api::valid_team(runtime, "shmemx_team_barrier", team);
  api::check_call(runtime, found, "shmemx_team_barrier");
  if (auto ok = found.sync(); !ok) {
    runtime.end_job(ok.error());
  }
}
SHMEM_CATCH(void)
