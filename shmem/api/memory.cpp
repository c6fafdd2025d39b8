// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.3: the symmetric heap.
#include "shmem/api/entry.hpp"
#include "shmem/memory/ordering.hpp"

using shmem::Context;
using shmem::Heap;
namespace api = shmem::api;

namespace {

void* allocate(const char* call, std::size_t size, std::size_t alignment, bool zero) {
  auto block = api::running(call).heap().allocate(size, alignment, zero);
  if (!block) {
    api::report_loudly(block.error());
    return nullptr;
  }
  return *block;
}

}  // namespace

SHMEM_ROUTINE(void*, malloc, (size_t size)) {
  return allocate("shmem_malloc", size, Heap::kMinAlignment, false);
}

SHMEM_ROUTINE(void*, calloc, (size_t count, size_t size)) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    // Still a collective call: the other PEs are in it too.
    bytes = SIZE_MAX;
  }
  return allocate("shmem_calloc", bytes, Heap::kMinAlignment, true);
}

SHMEM_ROUTINE(void*, align, (size_t alignment, size_t size)) {
  return allocate("shmem_align", size, alignment, false);
}

SHMEM_ROUTINE(void, free, (void* ptr)) {
  Context& context = api::running("shmem_free");
  shmem::quiet();
  if (auto ok = context.heap().release(ptr); !ok) {
    context.end_job(EXIT_FAILURE, ok.error().text);
  }
}
