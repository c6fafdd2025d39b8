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
    shmemx_core_t handle{core, context, {}};
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

int shmemx_core_sync(shmemx_core_t* core) noexcept {
  return core->keep(core->core.sync());
}

int shmemx_core_barrier(shmemx_core_t* core, shmem_team_t team) noexcept {
  shmem::quiet();
  return core->keep(api::valid_team(core->context, "shmemx_core_barrier", team).sync_on(core->core));
}
}
