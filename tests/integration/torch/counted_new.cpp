// SPDX-License-Identifier: Apache-2.0
// Loaded before the C++ library (LD_PRELOAD): counts what the backend and libshmem allocate, not what torch does.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> count{0};
std::atomic<bool> counts{false};

void* allocate(std::size_t size, const void* caller) {
  Dl_info module{};
  if (counts && ::dladdr(caller, &module) != 0 &&
      (std::strstr(module.dli_fname, "shmem_torch/_C") != nullptr ||
       std::strstr(module.dli_fname, "libshmem.so") != nullptr)) {
    ++count;
  }
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void begin_to_count() {
  count = 0;
  counts = true;
}
__attribute__((visibility("default"))) long counted() {
  counts = false;
  return count;
}
}

__attribute__((visibility("default"))) void* operator new(std::size_t size) {
  return allocate(size, __builtin_return_address(0));
}
__attribute__((visibility("default"))) void* operator new[](std::size_t size) {
  return allocate(size, __builtin_return_address(0));
}
__attribute__((visibility("default"))) void operator delete(void* memory) noexcept {
  std::free(memory);
}
__attribute__((visibility("default"))) void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
__attribute__((visibility("default"))) void operator delete[](void* memory) noexcept {
  std::free(memory);
}
__attribute__((visibility("default"))) void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
