// SPDX-License-Identifier: Apache-2.0
// Synchronisation of cores other than barriers of teams: lists of PEs, caches, words for barriers that a program writes
// itself, and the word that the host passes to kernels.

#include "shmem/api/remote.hpp"
#include "shmem/api/waiting.hpp"
#include "shmem/barrier/partial.hpp"
#include "shmem/cores/core.hpp"
#include "shmem_device.h"

using shmem::Job;
using shmem::KernelSync;
using shmem::PeList;
using shmem::Runtime;
using shmem::SyncWord;
using shmem::Team;
namespace api = shmem::api;

namespace {

static_assert(sizeof(SyncWord) == sizeof(shmemx_sync_word_t) && alignof(SyncWord) == alignof(shmemx_sync_word_t));
static_assert(SHMEMX_CORE_POOL_ROUNDS == shmem::kPoolRounds && SHMEMX_CORE_POOL_CORES == shmem::kMostPoolCores);
static_assert(SHMEMX_TEAM_POOL_WORDS == shmem::kTeamPoolWords);

shmemx_sync_word_t* shown(SyncWord& word) {
  return reinterpret_cast<shmemx_sync_word_t*>(&word);
}

/// The word behind an address that a program holds. Ends the job if it is invalid.
SyncWord& word_at(const Runtime& runtime, const char* call, shmemx_sync_word_t* word) {
  const Job& job = runtime.job();
  const auto begin = reinterpret_cast<std::uintptr_t>(job.memory.metadata(0));
  const auto offset = reinterpret_cast<std::uintptr_t>(word) - begin;
  const std::size_t areas = shmem::kMetadataSize * static_cast<std::size_t>(job.size);
  if (offset >= areas || offset % sizeof(SyncWord) != 0 || offset % shmem::kMetadataSize < shmem::kKernelSyncOffset) {
    api::end_job(runtime, call, "the given address is not that of a word of a pool");
  }
  return *reinterpret_cast<SyncWord*>(word);
}

shmem::TeamPool* team_pool(const char* call, shmem_team_t team, int pe) {
  Runtime& runtime = api::running(call);
  const Team* found = api::find_team(runtime, team);
  if (found == nullptr || pe < 0 || pe >= found->size()) {
    return nullptr;
  }
  const int number = runtime.job().nodes.number(found->map().pe(pe));
  // A PE of this node in another part of the team has another slot.
  if (number < 0 || !found->map_here().member(number)) {
    return nullptr;
  }
  return &runtime.job().kernel_sync(number).use_team_pool(found->slot());
}

shmem::Result<void> remote_list_barrier(const Job& job, const PeList& list, const std::string& prefix) {
  shmem::Result<void> result;
  const auto sync = [&](auto& /*core*/) {
    result = shmem::list_barrier_by_messages(*job.network, list);
    return result ? std::errc{} : result.error().code;
  };
  std::errc error{};
  if (shmemx_core_t* self = api::current_core(); self != nullptr) {
    error = shmem::on_core_zero(self->core, sync);
  } else {
    error = sync(list);
  }
  if (error == std::errc{}) {
    return {};
  }
  return shmem::fail(error, prefix + (result ? "core 0 could not synchronise with the others" : result.error().text));
}

shmem::Result<void> list_sync(const Job& job, const PeList& list, const std::string& prefix) {
  if (job.on_several_nodes()) {
    return remote_list_barrier(job, list, prefix);
  }
  shmem::ListMonitor monitor(job, list, prefix);
  shmemx_core_t* self = api::current_core();
  std::errc error{};
  if (self != nullptr) {
    shmem::WatchedCore core(self->core, monitor);
    error = shmem::partial_sync(core, shmem::ListWords(job), list, monitor.waits_for());
  } else {
    shmem::SoloCore core(job.policy, monitor);
    error = shmem::partial_sync(core, shmem::ListWords(job), list, monitor.waits_for());
  }
  return error == std::errc{} ? shmem::Result<void>{} : shmem::fail(error, monitor.explain(error));
}

int partial_barrier(const char* call, shmem_team_t team, const uint32_t* pes, uint32_t count) {
  Runtime& runtime = api::running(call);
  shmemx_core_t* core = api::current_core();
  if (core != nullptr && core->error != std::errc{}) {
    return core->failed();
  }
  const std::string prefix =
      core != nullptr ? api::said_by(*core, call) : fmt::format("shmem: PE {}: {}: ", runtime.my_pe(), call);
  shmem::Result<void> ok;
  const Team* found = api::find_team(runtime, team);
  if (found == nullptr) {
    ok = shmem::fail(std::errc::invalid_argument, prefix + api::not_a_team(team));
  } else if (auto list = PeList::create(runtime.my_pe(), found->map(), pes, count); !list) {
    ok = shmem::fail(std::errc::invalid_argument, prefix + list.error().text);
  } else {
    api::quiet();
    ok = list_sync(runtime.job(), *list, prefix);
  }
  if (core != nullptr) {
    return core->keep(ok);
  }
  return ok ? 0 : api::report_loudly(ok.error());
}

}  // namespace

extern "C" {

shmemx_core_t* shmemx_current_core() noexcept {
  return api::current_core();
}

void shmemx_core_check(const shmemx_core_t* core, const char* call) noexcept try { api::valid_core(call, core); }
SHMEM_CATCH(void)

uint64_t shmemx_get_ffts_config() noexcept try {
  if (const shmemx_core_t* core = api::current_core(); core != nullptr) {
    return core->ffts_config;
  }
  return api::running("shmemx_get_ffts_config").job().core_state().launch.read().ffts_config;
}
SHMEM_CATCH(uint64_t)

void shmemx_set_ffts_config(uint64_t config) noexcept try {
  if (shmemx_core_t* core = api::current_core(); core != nullptr) {
    core->ffts_config = config;
    return;
  }
  api::running("shmemx_set_ffts_config").job().core_state().launch.write({config});
}
SHMEM_CATCH(void)

int shmemx_core_team_sync(shmemx_core_t* core, shmem_team_t team) noexcept try {
  constexpr const char* kCall = "shmemx_core_team_sync";
  return api::sync_team_on(api::valid_core(kCall, core), kCall, team);
}
SHMEM_CATCH(int)

void shmemx_barrier_vec(shmem_team_t team) noexcept try {
  shmemx_core_t& core = api::valid_core("shmemx_barrier_vec");
  api::quiet();
  api::sync_team_on(core, "shmemx_barrier_vec", team);
}
SHMEM_CATCH(void)

void shmemx_barrier_all_vec() noexcept try {
  shmemx_core_t& core = api::valid_core("shmemx_barrier_all_vec");
  api::quiet();
  api::sync_team_on(core, "shmemx_barrier_all_vec", SHMEM_TEAM_WORLD);
}
SHMEM_CATCH(void)

int shmemx_partial_barrier(shmem_team_t team, const uint32_t* pes, uint32_t count) noexcept try {
  return partial_barrier("shmemx_partial_barrier", team, pes, count);
}
SHMEM_CATCH(int)

int shmemx_partial_barrier_vec(shmem_team_t team, const uint32_t* pes, uint32_t count) noexcept try {
  api::valid_core("shmemx_partial_barrier_vec");
  return partial_barrier("shmemx_partial_barrier_vec", team, pes, count);
}
SHMEM_CATCH(int)

// For the compiler a call into another library is a barrier; the fence is the one for the processor.
void shmemx_dcci(const void* /*address*/) noexcept {
  api::quiet();
}

void shmemx_dcci_range(const void* /*address*/, size_t /*bytes*/) noexcept {
  api::quiet();
}

void shmemx_dcci_all() noexcept {
  api::quiet();
}

shmemx_sync_word_t* shmemx_core_sync_pool(const shmemx_core_t* core) noexcept try {
  const Job& job = api::valid_core("shmemx_core_sync_pool", core).runtime.job();
  return shown(job.kernel_sync(job.me).core_pool[0][0]);
}
SHMEM_CATCH(shmemx_sync_word_t*)

shmemx_sync_word_t* shmemx_core_sync_counter(const shmemx_core_t* core) noexcept try {
  const Job& job = api::valid_core("shmemx_core_sync_counter", core).runtime.job();
  return shown(job.kernel_sync(job.me).core_counter);
}
SHMEM_CATCH(shmemx_sync_word_t*)

int shmemx_core_sync_in_memory(shmemx_core_t* core) noexcept try {
  constexpr const char* kCall = "shmemx_core_sync_in_memory";
  shmemx_core_t& self = api::valid_core(kCall, core);
  if (self.error != std::errc{}) {
    return self.failed();
  }
  if (static_cast<std::size_t>(self.core.count()) > shmem::kMostPoolCores) {
    return self.keep(shmem::fail(std::errc::invalid_argument,
                                 fmt::format("{}the pool has words for {} cores, the kernel runs on {}",
                                             api::said_by(self, kCall), shmem::kMostPoolCores, self.core.count())));
  }
  const Job& job = self.runtime.job();
  KernelSync& sync = job.kernel_sync(job.me);
  shmem::WaitMonitor monitor(job);
  shmem::WatchedCore watched(self.core, monitor);
  const std::errc error =
      shmem::disseminate_cores(watched, sync.core_pool[0].data(), shmem::kPoolRounds, sync.core_counter);
  return error == std::errc{}
             ? 0
             : self.keep(shmem::fail(error, api::said_by(self, kCall) + "the wait for the other cores of this PE " +
                                                monitor.explain(error)));
}
SHMEM_CATCH(int)

shmemx_sync_word_t* shmemx_team_sync_pool(shmem_team_t team, int pe) noexcept try {
  shmem::TeamPool* pool = team_pool("shmemx_team_sync_pool", team, pe);
  return pool != nullptr ? shown(pool->words[0]) : nullptr;
}
SHMEM_CATCH(shmemx_sync_word_t*)

shmemx_sync_word_t* shmemx_team_sync_counter(shmem_team_t team, int pe) noexcept try {
  shmem::TeamPool* pool = team_pool("shmemx_team_sync_counter", team, pe);
  return pool != nullptr ? shown(pool->counter) : nullptr;
}
SHMEM_CATCH(shmemx_sync_word_t*)

void shmemx_sync_set(shmemx_sync_word_t* word, uint64_t value) noexcept try {
  constexpr const char* kCall = "shmemx_sync_set";
  shmem::publish(word_at(api::running(kCall), kCall, word), value);
}
SHMEM_CATCH(void)

int shmemx_sync_wait_until(shmemx_sync_word_t* word, int cmp, uint64_t value) noexcept try {
  constexpr const char* kCall = "shmemx_sync_wait_until";
  const Runtime& runtime = api::running(kCall);
  api::check_cmp(runtime, kCall, cmp);
  SyncWord& awaited = word_at(runtime, kCall, word);
  std::uint64_t last = 0;
  const auto reached = [&](std::uint64_t seen) { return api::compare(last = seen, cmp, value); };
  shmemx_core_t* core = api::current_core();
  api::WordMonitor monitor(runtime, kCall, core, [&] { return api::unmet(runtime, word, last, cmp, value); });
  if (core == nullptr) {
    const std::errc error = shmem::wait_on(awaited, runtime.job().policy, reached, [&monitor] { return monitor(); });
    if (error != std::errc{}) {
      api::end_job(runtime, kCall, monitor.explain(error));
    }
    return 0;
  }
  if (core->error != std::errc{}) {
    return core->failed();
  }
  const std::errc error =
      shmem::wait_on(awaited, core->core.policy(), reached, shmem::WatchedCheck(core->core.check(), monitor));
  return error == std::errc{} ? 0 : core->keep(shmem::fail(error, api::said_by(*core, kCall) + monitor.explain(error)));
}
SHMEM_CATCH(int)
}
