// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/counted_yields.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shmem_test {

thread_local unsigned yields_of_thread = 0;
thread_local std::atomic<unsigned>* seen_yields = nullptr;

}  // namespace shmem_test

extern "C" int sched_yield() noexcept {
  ++shmem_test::yields_of_thread;
  if (shmem_test::seen_yields != nullptr) {
    ++*shmem_test::seen_yields;
    return 0;
  }
  return static_cast<int>(::syscall(SYS_sched_yield));
}
