// SPDX-License-Identifier: Apache-2.0
// SHMEM_CYCLE_PROF_PE: the time that parts of kernels take.
#include <chrono>
#include <cstdio>

#include "shmem/api/kernel_core.hpp"
#include "shmemx_interface.h"

using shmem::Profile;
namespace api = shmem::api;

static_assert(sizeof(Profile) == sizeof(shmemx_prof_t) && SHMEMX_PROF_CORES == Profile::kCores &&
              SHMEMX_PROF_FRAMES == Profile::kFrames);
static_assert(offsetof(Profile, cores) == offsetof(shmemx_prof_t, block_prof));

namespace {

/// The calling core's row; nullptr if this PE does not measure.
Profile::Core* row(int frame) {
  const shmemx_core_t* core = api::current_core();
  if (core == nullptr || frame < 0 || static_cast<std::size_t>(frame) >= Profile::kFrames) {
    return nullptr;
  }
  Profile* profile = core->runtime.profile();
  const auto index = static_cast<std::size_t>(core->core.index());
  return profile != nullptr && index < Profile::kCores ? &profile->cores[index] : nullptr;
}

std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

extern "C" {

void shmemx_prof_start(int frame) noexcept try {
  if (Profile::Core* mine = row(frame); mine != nullptr) {
    mine->time[static_cast<std::size_t>(frame)] -= now();
  }
}
SHMEM_CATCH(void)

void shmemx_prof_end(int frame) noexcept try {
  if (Profile::Core* mine = row(frame); mine != nullptr) {
    mine->time[static_cast<std::size_t>(frame)] += now();
    ++mine->count[static_cast<std::size_t>(frame)];
  }
}
SHMEM_CATCH(void)

shmemx_prof_t* shmemx_prof() noexcept try {
  return reinterpret_cast<shmemx_prof_t*>(api::running("shmemx_prof").profile());
}
SHMEM_CATCH(shmemx_prof_t*)

void shmemx_prof_print() noexcept {
  const Profile* profile = api::running("shmemx_prof_print").profile();
  if (profile == nullptr) {
    return;
  }
  std::printf("PE %d: core, frame, times, ns in all, ns each time\n", profile->pe);
  for (std::size_t core = 0; core < Profile::kCores; ++core) {
    for (std::size_t frame = 0; frame < Profile::kFrames; ++frame) {
      const std::int64_t count = profile->cores[core].count[frame];
      if (count != 0) {
        const std::int64_t time = profile->cores[core].time[frame];
        std::printf("%zu, %zu, %lld, %lld, %lld\n", core, frame, static_cast<long long>(count),
                    static_cast<long long>(time), static_cast<long long>(time / count));
      }
    }
  }
}
}
