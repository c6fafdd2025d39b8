// SPDX-License-Identifier: Apache-2.0
// The memory of each thread that stands for a core's own.
#include <memory>
#include <new>

#include "shmem/api/entry.hpp"
#include "shmemx_interface.h"

extern "C" void* shmemx_scratch(const void* pointer) noexcept {
  static thread_local std::unique_ptr<std::byte[]> mine;
  const auto offset = reinterpret_cast<std::uintptr_t>(pointer);
  if (offset >= SHMEMX_SCRATCH_SIZE) {
    return const_cast<void*>(pointer);
  }
  if (mine == nullptr) {
    mine.reset(new (std::nothrow) std::byte[SHMEMX_SCRATCH_SIZE]);
    if (mine == nullptr) {
      shmem::api::end_job(shmem::api::running("shmemx_scratch"), "shmemx_scratch", "out of memory");
    }
  }
  return mine.get() + offset;
}
