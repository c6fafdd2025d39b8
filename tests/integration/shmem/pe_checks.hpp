// SPDX-License-Identifier: Apache-2.0
// Checks made by PEs and by the cores of their kernels: failures are printed and counted.
#pragma once

#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <chrono>
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

/// The result of a call that fails because a PE has died: within a second, as documented. The limit leaves room for a
/// busy machine, and is far below the timeouts.
template <typename Call>
auto fails_soon(Call call, int line = __builtin_LINE()) {
  const auto start = std::chrono::steady_clock::now();
  auto result = call();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  check(passed < std::chrono::seconds{10}, "an error within 10 s", line);
  std::printf("PE %d: first error after %.2f s\n", shmem_my_pe(), passed.count());
  return result;
}

/// Allocates zeroed symmetric memory.
template <typename T>
T* allocate(std::size_t count = 1) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

}  // namespace pe_checks
