// SPDX-License-Identifier: Apache-2.0
// What most parts of C++ programs of PEs include; pe.h has their checks.
#pragma once

#include <shmem.h>
#include <shmemx.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/pe.h"

namespace pe_checks {

/// How many checks have failed.
struct Failures {
  operator int() const { return pe_failures(); }
};
inline constexpr Failures failures;

/// The result of a call that fails because a PE has died: within a second, as documented. The limit leaves room for a
/// busy machine, and is far below the timeouts.
template <typename Call>
auto fails_soon(Call call, int line = __builtin_LINE()) {
  const auto start = std::chrono::steady_clock::now();
  auto result = call();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  if (passed >= std::chrono::seconds{60}) {
    pe_failed(__FILE__, line, "there is an error within 60 s", "");
  }
  std::printf("PE %d: first error after %.2f s\n", shmem_my_pe(), passed.count());
  return result;
}

/// Allocates zeroed symmetric memory.
template <typename T>
T* allocate(std::size_t count = 1) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

/// Calls the action of this name. If there is no such action, prints that and returns false.
inline bool act(std::string_view name, const std::vector<std::pair<std::string_view, std::function<void()>>>& actions) {
  const auto found = std::ranges::find(actions, name, [](const auto& action) { return action.first; });
  if (found == actions.end()) {
    std::fprintf(stderr, "there is no action \"%s\"\n", std::string(name).c_str());
    return false;
  }
  found->second();
  return true;
}

}  // namespace pe_checks
