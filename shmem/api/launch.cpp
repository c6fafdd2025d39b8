// SPDX-License-Identifier: Apache-2.0
// Kernels on the vector cores of a PE.
#include "shmem/api/entry.hpp"
#include "shmem/memory/ordering.hpp"

using shmem::Context;
namespace api = shmem::api;

/// What a kernel holds in its hand.
struct shmemx_core_t {
  shmem::ThreadCore& core;
  Context& context;
  const shmem::CoreState& state;
  std::errc error;  // the first that a call of this core gave

  int keep(std::errc now) {
    error = error == std::errc{} ? now : error;
    return -static_cast<int>(now);
  }
};

extern "C" {

int shmemx_launch(int cores, shmemx_kernel_t kernel, void* argument) noexcept {
  Context& context = api::running("shmemx_launch");
  if (kernel == nullptr) {
    return api::report({std::errc::invalid_argument, "shmemx_launch: no kernel was given"});
  }
  auto group = context.cores(cores);
  if (!group) {
    return api::report(group.error());
  }
  const auto run = [&](shmem::ThreadCore& core) {
    shmemx_core_t handle{core, context, context.job().core_state(), {}};
    kernel(&handle, argument);
    return handle.error;
  };
  const std::errc error = (*group)->run(run, shmem::JobWatch(context.job()));
  return error == std::errc{} ? 0
                              : api::report({error, "shmemx_launch: a wait in the kernel failed: " +
                                                        std::make_error_code(error).message()});
}

int shmemx_core_index(const shmemx_core_t* core) noexcept {
  return core->core.index();
}

int shmemx_core_count(const shmemx_core_t* core) noexcept {
  return core->core.count();
}

int shmemx_core_my_pe(const shmemx_core_t* core) noexcept {
  return core->state.job.read().my_pe;
}

int shmemx_core_n_pes(const shmemx_core_t* core) noexcept {
  return core->state.job.read().n_pes;
}

int shmemx_core_team_my_pe(const shmemx_core_t* core, shmem_team_t team) noexcept {
  const shmem::CoreTeam found = core->state.find(team);
  return found.size > 0 ? found.me : -1;
}

int shmemx_core_team_n_pes(const shmemx_core_t* core, shmem_team_t team) noexcept {
  const shmem::CoreTeam found = core->state.find(team);
  return found.size > 0 ? found.size : -1;
}

int shmemx_core_team_translate_pe(const shmemx_core_t* core, shmem_team_t src_team, int src_pe,
                                  shmem_team_t dest_team) noexcept {
  const shmem::CoreTeam from = core->state.find(src_team);
  const shmem::CoreTeam to = core->state.find(dest_team);
  if (src_pe < 0 || src_pe >= from.size || to.size == 0) {
    return -1;
  }
  const int pe = shmem::TeamMap{from.start, from.stride, from.size}.pe(src_pe);
  return shmem::TeamMap{to.start, to.stride, to.size}.member(pe).value_or(-1);
}

void* shmemx_core_ptr(const shmemx_core_t* core, const void* dest, int pe) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(dest);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses stand in the metadata area as numbers
  return reinterpret_cast<void*>(shmem::core_translate(core->state, address, pe));
}

int shmemx_core_sync(shmemx_core_t* core) noexcept {
  return core->keep(core->core.sync());
}

int shmemx_core_barrier(shmemx_core_t* core, shmem_team_t team) noexcept {
  shmem::quiet();
  return core->keep(api::valid_team(core->context, "shmemx_core_barrier", team).sync_on(core->core));
}
}
