// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.9: barrier = quiet, then sync. On a core of a kernel the same names mean all cores of all
// members.
#include "shmem/api/kernel_core.hpp"
#include "shmem/barrier/active_set.hpp"
#include "shmem/barrier/timed_watch.hpp"
#include "shmem/memory/ordering.hpp"

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
  sync_or_end(context, *context.teams().find(shmem::kWorldTeam));
}

void sync_active_set(const char* call, int start, int log_stride, int size, long* psync) {
  const Context& context = api::running_on_host(call);
  const std::int64_t last = start + ((std::int64_t{size} - 1) << (log_stride & 31));
  if (start < 0 || log_stride < 0 || log_stride > 30 || size < 1 || last >= context.n_pes()) {
    api::end_job(context, call,
                 "start " + std::to_string(start) + ", log stride " + std::to_string(log_stride) + ", size " +
                     std::to_string(size) + " name no PEs of this job of " + std::to_string(context.n_pes()));
  }
  const shmem::TeamMap set{start, 1 << log_stride, size};
  if (!set.member(context.my_pe())) {
    api::end_job(context, call, "this PE is not in the set");
  }
  static_assert(SHMEM_BARRIER_SYNC_SIZE >= shmem::kActiveSetRounds);
  constexpr std::size_t kBytes = SHMEM_BARRIER_SYNC_SIZE * sizeof(long);
  api::remote(context, call, psync, kBytes, context.my_pe());
  // A global variable need not be one of those who are told, too.
  const int me = *set.member(context.my_pe());
  for (int distance = 1; distance < size; distance <<= 1) {
    api::remote(context, call, psync, kBytes, set.pe((me + distance) % size));
  }
  shmem::TimedWatch watch(context.job());
  const std::errc error = shmem::active_set_sync(context.job(), set, psync, [&watch] { return watch(); });
  if (error != std::errc{}) {
    api::end_job(context, call, "the wait for the " + std::to_string(size) + " PEs of the set " + watch.explain(error));
  }
}

}  // namespace

SHMEM_ROUTINE(void, barrier_all, (void)) {
  shmem::quiet();
  sync_world("shmem_barrier_all");
}

SHMEM_ROUTINE(void, sync_all, (void)) {
  sync_world("shmem_sync_all");
}

SHMEM_ROUTINE(int, team_sync, (shmem_team_t team)) {
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    return api::sync_team_on(*core, "shmem_team_sync", team);
  }
  Team* found = api::running("shmem_team_sync").teams().find(team);
  if (found == nullptr) {
    return api::report_loudly(
        {std::errc::invalid_argument, "shmem: shmem_team_sync: " + std::to_string(team) + " is not a team of this PE"});
  }
  auto ok = found->sync();
  return ok ? 0 : api::report_loudly(ok.error());
}

SHMEM_ROUTINE(void, barrier, (int PE_start, int logPE_stride, int PE_size, long* pSync)) {
  shmem::quiet();
  sync_active_set("shmem_barrier", PE_start, logPE_stride, PE_size, pSync);
}

SHMEM_ROUTINE(void, sync, (int PE_start, int logPE_stride, int PE_size, long* pSync)) {
  sync_active_set("shmem_sync", PE_start, logPE_stride, PE_size, pSync);
}

extern "C" void shmemx_team_barrier(shmem_team_t team) noexcept {
  shmem::quiet();
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    api::sync_team_on(*core, "shmemx_team_barrier", team);
    return;
  }
  Context& context = api::running("shmemx_team_barrier");
  sync_or_end(context, api::valid_team(context, "shmemx_team_barrier", team));
}
