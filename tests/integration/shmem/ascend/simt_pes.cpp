// SPDX-License-Identifier: Apache-2.0
// Kernels of threads (SIMT), which are lanes: copies of a thread, a warp and a block, and threads that wait for others.
#define USE_SIMT
#include <shmem.h>  // the one in ascend/

#include <algorithm>
#include <vector>

#include "areas.hpp"

namespace {

using namespace areas;

constexpr int kLanes = 80;  // two warps and a half

__simt_callee__ size_t thread() {
  return threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.x * blockDim.y;
}

/// Each thread fills in its element of `source` just before the copy, which must see all of them.
template <typename T>
__simt_vf__ __launch_bounds__(kLanes) void block(T* dest, T* source, int core, int to) {
  const size_t i = thread();
  source[i] = static_cast<T>(pattern(simt::aclshmem_my_pe(), i + static_cast<size_t>(core)));
  simt::aclshmemx_putmem_block(dest, source, kLanes / 2 * sizeof(T), to);
  simt::aclshmemx_mte_put_nbi_block(dest + kLanes / 2, source + kLanes / 2, kLanes / 2, to);
}
__simt_vf__ void warp(int32_t* dest, int32_t* source, int core, int to) {
  const size_t i = thread();
  const size_t first = i / warpSize * warpSize;
  source[i] = pattern(simt::aclshmem_my_pe(), i + static_cast<size_t>(core));
  simt::aclshmemx_int32_put_warp(dest + first, source + first, first == 64 ? 16 : 32, to);
}
__simt_vf__ void threads(int32_t* dest, int32_t* source, int to) {
  const size_t i = thread();
  switch (i % 3) {
    case 0:
      return simt::aclshmem_int32_p(dest + i, source[i], to);
    case 1:
      return simt::aclshmem_put32_nbi(dest + i, source + i, 1, to);
    default:
      return simt::aclshmem_int32_put(dest + i, source + i, 1, to);
  }
}
__simt_vf__ void gets(int32_t* dest, int32_t* source, int from) {
  const size_t i = thread();
  if (i < 32) {
    simt::aclshmemx_get64_warp(dest, source, 16, from);
  } else {
    dest[i] = simt::aclshmem_int32_g(source + i, from);
  }
}
/// Threads that read what others wrote before asc_syncthreads, while some have ended.
__simt_vf__ void waits(int32_t* numbers) {
  const size_t i = thread();
  if (i >= 60) {
    return;
  }
  for (int32_t round = 1; round <= 3; ++round) {
    numbers[i] = 100 * round + static_cast<int32_t>(i);
    asc_syncthreads();
    CHECK(numbers[(i + 7) % 60] == 100 * round + static_cast<int32_t>((i + 7) % 60));
    asc_syncthreads();
  }
}

__global__ __vector__ void kernel(shmemx_core_t* core, void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  const int me = shmemx_core_index(core);
  moves<int32_t>(work, left(), kLanes, [&](const Areas<int32_t>& a) {
    std::fill(a.source, a.source + kLanes, 0);
    asc_vf_call<block<int32_t>>(dim3(4, 10, 2), a.dest, a.source, me, right());
  });
  moves<aclshmem_half_t>(work, left(), kLanes, [&](const Areas<aclshmem_half_t>& a) {
    asc_vf_call<block<aclshmem_half_t>>(dim3(kLanes), a.dest, a.source, me, right());
  });
  moves<int32_t>(work, left(), kLanes, [&](const Areas<int32_t>& a) {
    std::fill(a.source, a.source + kLanes, 0);
    asc_vf_call<warp>(dim3(kLanes), a.dest, a.source, me, right());
  });
  moves<int32_t>(work, left(), kLanes,
                 [&](const Areas<int32_t>& a) { asc_vf_call<threads>(dim3(kLanes), a.dest, a.source, right()); });
  moves<int32_t>(work, right(), kLanes,
                 [&](const Areas<int32_t>& a) { asc_vf_call<gets>(dim3(kLanes), a.dest, a.source, right()); });
  std::vector<int32_t> numbers(kLanes);
  asc_vf_call<waits>(dim3(kLanes), numbers.data());
  CHECK(shmemx_lane() == 0 && shmemx_lane_count() == 1 && shmemx_sync_lanes(0) == 1);
}

void nothing(void* /*argument*/) {}
void nested(void* result) {
  *static_cast<int*>(result) = shmemx_run_lanes(1, nothing, nullptr);
}

void ends_the_process(void* status) {
  if (shmemx_lane() == 3) {
    std::exit(*static_cast<int*>(status));
  }
}

}  // namespace

/// A lane ends the process; its exit handlers run on the stack of the lane.
PE_PART(lane_exit) {
  shmem_init();
  int status = 7;
  shmemx_run_lanes(8, ends_the_process, &status);
  return 0;
}

PE_PART(simt) {
  shmem_init();
  constexpr size_t kCores = 2;
  Work work{static_cast<char*>(aclshmem_calloc(kCores, kRoom * 16)),
            static_cast<char*>(aclshmem_calloc(kCores, kRoom * 16)),
            static_cast<int32_t*>(aclshmem_calloc(kCores, sizeof(int32_t)))};
  CHECK(shmemx_launch(kCores, kernel, &work) == 0);
  CHECK(shmemx_run_lanes(0, nothing, nullptr) == -EINVAL && shmemx_run_lanes(4097, nothing, nullptr) == -EINVAL);
  CHECK(shmemx_run_lanes(1, nullptr, nullptr) == -EINVAL && shmemx_run_lanes(4096, nothing, nullptr) == 0);
  int result = 0;
  CHECK(shmemx_run_lanes(1, nested, &result) == 0 && result == -EBUSY);
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  return 0;
}
