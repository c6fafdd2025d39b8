// SPDX-License-Identifier: Apache-2.0
// Routines of other OpenSHMEM libraries that nothing else here does.
#include <chrono>

#include "shmem/api/entry.hpp"

// Cache control, for machines whose caches were not coherent.
SHMEM_ROUTINE(void, set_cache_inv, (void)) {}
SHMEM_ROUTINE(void, set_cache_line_inv, (void* /*dest*/)) {}
SHMEM_ROUTINE(void, clear_cache_inv, (void)) {}
SHMEM_ROUTINE(void, clear_cache_line_inv, (void* /*dest*/)) {}
SHMEM_ROUTINE(void, udcflush, (void)) {}
SHMEM_ROUTINE(void, udcflush_line, (void* /*dest*/)) {}

extern "C" double shmemx_wtime() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
