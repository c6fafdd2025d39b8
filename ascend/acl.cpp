// SPDX-License-Identifier: Apache-2.0
// The parts of ascend/cann/acl/acl.h that cannot be in a header. Programs call them before, during and after the
// library's run.
#include <atomic>

#include "ascend/cann/acl/acl.h"
#include "shmem/api/entry.hpp"

namespace {

std::atomic<bool>& started() {
  static std::atomic<bool> yes{false};
  return yes;
}

int& device() {
  static thread_local int mine = -1;
  return mine;
}

}  // namespace

extern "C" {

// Relaxed, both: no other data depends on the flag.
int shmemx_acl_init() noexcept {
  return started().exchange(true, std::memory_order_relaxed) ? -1 : 0;
}

int shmemx_acl_finalize() noexcept {
  return started().exchange(false, std::memory_order_relaxed) ? 0 : -1;
}

void shmemx_acl_set_device(int number) noexcept {
  device() = number;
}

int shmemx_acl_device() noexcept {
  return device();
}

int shmemx_acl_fail(const char* call, const char* problem, int code) noexcept {
  shmem::api::report({std::errc::invalid_argument, std::string("shmem: ") + call + ": " + problem});
  return code;
}
}
