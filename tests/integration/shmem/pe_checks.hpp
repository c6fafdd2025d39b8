// SPDX-License-Identifier: Apache-2.0
// Checks made by PEs and by the cores of their kernels: failures are printed and counted.
#pragma once

#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <cstddef>
#include <cstdio>

namespace pe_checks {

inline std::atomic<int> failures{0};

inline void check(bool good, const char* what, int line) {
  if (!good) {
    ++failures;
    std::fprintf(stderr, "PE %d, line %d: %s (%s)\n", shmem_my_pe(), line, what, shmemx_error_text());
  }
}
#define CHECK(condition) pe_checks::check((condition), #condition, __LINE__)

/// Allocates zeroed symmetric memory.
template <typename T>
T* allocate(std::size_t count = 1) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

}  // namespace pe_checks
