/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small stand-in for the header of this name of Ascend C: kernels of threads (SIMT) compile for a core of
 * shmemx_launch. The threads of a block are lanes (shmemx_interface.h), which the core's thread runs in turn, each
 * until it waits for others. C++17; included by kernel_operator.h if USE_SIMT is defined.
 */
#ifndef SHMEM_ASCEND_ASC_SIMT_H
#define SHMEM_ASCEND_ASC_SIMT_H

#include <cstdint>

#include "../../../shmem_device.h"
#include "../../../shmemx_interface.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are Ascend C's */
#define __simt_vf__
#define __simt_callee__
#define __launch_bounds__(threads)
#define __vector__
/* NOLINTEND(bugprone-reserved-identifier) */

struct dim3 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
  constexpr dim3(uint32_t x_size = 1, uint32_t y_size = 1, uint32_t z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};

inline dim3& asci_block_dim() noexcept {
  static thread_local dim3 mine;
  return mine;
}
inline dim3 asci_thread_idx() noexcept {
  const dim3 block = asci_block_dim();
  const auto lane = static_cast<uint32_t>(shmemx_lane());
  return {lane % block.x, lane / block.x % block.y, lane / block.x / block.y};
}
inline dim3 asci_block_idx() noexcept {
  const shmemx_core_t* core = shmemx_current_core();
  return {core != nullptr ? static_cast<uint32_t>(shmemx_core_index(core)) : 0, 0, 0};
}
inline dim3 asci_grid_dim() noexcept {
  const shmemx_core_t* core = shmemx_current_core();
  return {core != nullptr ? static_cast<uint32_t>(shmemx_core_count(core)) : 1};
}
#define threadIdx asci_thread_idx()
#define blockDim asci_block_dim()
#define blockIdx asci_block_idx()
#define gridDim asci_grid_dim()
enum : int { warpSize = 32 };

inline void asc_syncthreads() noexcept {
  shmemx_sync_lanes(0);
}

/* Kernel(arguments...) in each thread of a block. */
template <auto Kernel, typename... Arguments>
void asc_vf_call(dim3 threads, Arguments... arguments) noexcept {
  auto call = [&arguments...] { Kernel(arguments...); };
  asci_block_dim() = threads;
  const int error = shmemx_run_lanes(
      static_cast<int>(threads.x * threads.y * threads.z),
      [](void* argument) { (*static_cast<decltype(call)*>(argument))(); }, &call);
  if (error != 0) {
    shmemx_refuse("asc_vf_call", shmemx_error_text());
  }
}

#endif
