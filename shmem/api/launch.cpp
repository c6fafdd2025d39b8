// SPDX-License-Identifier: Apache-2.0
// Kernels on the vector cores of a PE.
#include "shmem/api/kernel_core.hpp"
#include "shmem/api/remote.hpp"
#include "shmem/barrier/pool_barrier.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/team/spanning_team.hpp"
#include "shmem_device.h"

static_assert(SHMEMX_MAX_TEAMS == shmem::kMaxTeams);

using shmem::Runtime;
namespace api = shmem::api;

namespace {

/// The calling thread is `core` for as long as this lives.
class BeingCore {
 public:
  explicit BeingCore(shmemx_core_t& core) { api::running_core = &core; }
  BeingCore(const BeingCore&) = delete;
  BeingCore& operator=(const BeingCore&) = delete;
  ~BeingCore() { api::running_core = nullptr; }
};

}  // namespace

namespace shmem::api {

constinit thread_local shmemx_core_t* running_core = nullptr;

std::string said_by(const shmemx_core_t& core, const char* call) {
  return fmt::format("shmem: PE {}, core {}: {}: ", core.runtime.my_pe(), core.core.index(), call);
}

void refuse_on_core(const char* call) {
  end_job(running(call), call, "a kernel cannot call it: it is for the thread that launches kernels");
}

shmemx_core_t& valid_core(const char* call, const shmemx_core_t* core) {
  if (core == nullptr || core != running_core) {
    end_job(running(call), call,
            running_core == nullptr ? "this thread runs no kernel (shmemx_launch runs one on every core)"
                                    : "the given core is not the one that this thread is");
  }
  return *running_core;
}

shmemx_core_t& valid_core(const char* call) {
  return valid_core(call, running_core);
}

int sync_team_on(shmemx_core_t& core, const char* call, shmem_team_t team) {
  if (core.error != std::errc{}) {
    return core.failed();
  }
  return core.keep(valid_team(core.runtime, call, team).sync_on(core.core));
}

}  // namespace shmem::api

extern "C" {

int shmemx_launch(int cores, shmemx_kernel_t kernel, void* argument) noexcept try {
  Runtime& runtime = api::running("shmemx_launch");
  if (kernel == nullptr) {
    return api::report({std::errc::invalid_argument, "shmemx_launch: no kernel was given"});
  }
  if (api::running_core != nullptr) {
    return api::report({std::errc::device_or_resource_busy, "shmemx_launch: a kernel cannot launch another"});
  }
  api::LaunchErrors errors;
  api::LaunchFlags flags(cores);
  const auto run = [&](shmem::ThreadCore& core) {
    const shmem::CoreState& state = runtime.job().core_state();
    shmemx_core_t handle{core, runtime, state, errors, flags, state.launch.read().ffts_config, {}};
    const BeingCore being(handle);
    kernel(&handle, argument);
    return handle.error;
  };
  std::errc error{};
  const auto launched = runtime.on_cores(cores, [&](shmem::CoreGroup& group) -> shmem::Result<void> {
    error = group.run(run, [&job = runtime.job()] { return job.ended(); });
    if (error != std::errc{}) {
      runtime.job().kernel_sync(runtime.job().me).clear_core_pool(cores);
    }
    return {};
  });
  if (!launched) {
    return api::report(launched.error());
  }
  return error == std::errc{} ? 0 : api::report_loudly({error, errors.text()});
}
SHMEM_CATCH(int)

int shmemx_core_index(const shmemx_core_t* core) noexcept try {
  return api::valid_core("shmemx_core_index", core).core.index();
}
SHMEM_CATCH(int)

int shmemx_core_count(const shmemx_core_t* core) noexcept try {
  return api::valid_core("shmemx_core_count", core).core.count();
}
SHMEM_CATCH(int)

int shmemx_core_my_pe(const shmemx_core_t* core) noexcept try {
  return api::valid_core("shmemx_core_my_pe", core).runtime.my_pe();
}
SHMEM_CATCH(int)

int shmemx_core_n_pes(const shmemx_core_t* core) noexcept try {
  return api::valid_core("shmemx_core_n_pes", core).runtime.n_pes();
}
SHMEM_CATCH(int)

int shmemx_core_team_my_pe(const shmemx_core_t* core, shmem_team_t team) noexcept try {
  const shmem::CoreTeam found = api::valid_core("shmemx_core_team_my_pe", core).state.find(api::slot_of(team));
  return found.size > 0 ? found.me : -1;
}
SHMEM_CATCH(int)

int shmemx_core_team_n_pes(const shmemx_core_t* core, shmem_team_t team) noexcept try {
  const shmem::CoreTeam found = api::valid_core("shmemx_core_team_n_pes", core).state.find(api::slot_of(team));
  return found.size > 0 ? found.size : -1;
}
SHMEM_CATCH(int)

int shmemx_core_team_translate_pe(const shmemx_core_t* core, shmem_team_t src_team, int src_pe,
                                  shmem_team_t dest_team) noexcept try {
  const shmemx_core_t& self = api::valid_core("shmemx_core_team_translate_pe", core);
  const shmem::CoreTeam from = self.state.find(api::slot_of(src_team));
  const shmem::CoreTeam to = self.state.find(api::slot_of(dest_team));
  if (src_pe < 0 || src_pe >= from.size || to.size == 0) {
    return -1;
  }
  const int pe = shmem::TeamMap{from.start, from.stride, from.size}.pe(src_pe);
  return shmem::TeamMap{to.start, to.stride, to.size}.member(pe).value_or(-1);
}
SHMEM_CATCH(int)

void* shmemx_core_ptr(const shmemx_core_t* core, const void* dest, int pe) noexcept try {
  const shmemx_core_t& self = api::valid_core("shmemx_core_ptr", core);
  const bool exists = pe >= 0 && pe < self.runtime.n_pes();
  const int number = exists ? self.runtime.job().nodes.number(pe) : -1;
  const auto address = reinterpret_cast<std::uintptr_t>(dest);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses stand in the metadata area as numbers
  return reinterpret_cast<void*>(shmem::core_translate(self.state, address, number));
}
SHMEM_CATCH(void*)

int shmemx_core_sync(shmemx_core_t* core) noexcept try {
  shmemx_core_t& self = api::valid_core("shmemx_core_sync", core);
  if (self.error != std::errc{}) {
    return self.failed();
  }
  return self.keep(shmem::sync_cores(self.runtime.job(), self.core));
}
SHMEM_CATCH(int)

int shmemx_core_barrier(shmemx_core_t* core, shmem_team_t team) noexcept try {
  shmemx_core_t& self = api::valid_core("shmemx_core_barrier", core);
  api::quiet();
  return api::sync_team_on(self, "shmemx_core_barrier", team);
}
SHMEM_CATCH(int)

int shmemx_core_barrier_by(shmemx_core_t* core, shmem_team_t team, const char* algorithm) noexcept try {
  constexpr const char* kCall = "shmemx_core_barrier_by";
  shmemx_core_t& self = api::valid_core(kCall, core);
  if (self.error != std::errc{}) {
    return self.failed();
  }
  shmem::Team& found = api::valid_team(self.runtime, kCall, team);
  const auto named = shmem::find_algorithm(algorithm != nullptr ? algorithm : "");
  if (!named) {
    const std::string text =
        fmt::format("{}\"{}\" is not an algorithm of barriers (npu_v1, npu_v2, npu_v3, ...: shmem_info lists them)",
                    api::said_by(self, kCall), algorithm != nullptr ? algorithm : "NULL");
    return self.keep(shmem::fail(std::errc::invalid_argument, text));
  }
  api::quiet();
  if (found.spanning() != nullptr) {
    return self.keep(found.spanning()->sync_on_by(self.core, *named));
  }
  const shmem::Job& job = self.runtime.job();
  job.kernel_sync(job.me).use_team_pool(found.slot());
  const shmem::PoolView view(job, found.map_here(), found.slot());
  const shmem::BarrierChoice choice = shmem::fit_to_pool({*named, found.barrier_choice().tuning}, found.size());
  return self.keep(shmem::pool_sync(job, self.core, view, choice, kCall));
}
SHMEM_CATCH(int)
}
