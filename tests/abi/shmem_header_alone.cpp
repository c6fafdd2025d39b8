// SPDX-License-Identifier: Apache-2.0
// shmemx.h compiles alone in C++20, as the first header, with the overloads or without (SHMEM_NO_OVERLOADS).
#include <shmemx.h>

#include <type_traits>

#ifdef SHMEM_NO_OVERLOADS
// Without overloads each name is a single function.
static_assert(std::is_same_v<decltype(&shmem_barrier), void (*)(int, int, int, long*)>);
#else
static_assert(std::is_same_v<decltype(shmem_sync(SHMEM_TEAM_WORLD)), int>);
static_assert(std::is_same_v<decltype(shmem_barrier(SHMEM_TEAM_WORLD)), void>);
static_assert(std::is_same_v<decltype(shmem_signal_fetch(static_cast<const int32_t*>(nullptr))), int32_t>);
static_assert(std::is_same_v<decltype(shmem_signal_fetch(static_cast<const uint64_t*>(nullptr))), uint64_t>);
#endif

int main() {
  return shmem_my_pe() == -1 ? 0 : 1;
}
