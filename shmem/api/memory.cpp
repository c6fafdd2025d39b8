// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.3: the symmetric heap.
#include <bit>
#include <cstdio>

#include "shmem/api/kernel_core.hpp"
#include "shmem/api/remote.hpp"
#include "shmem/memory/pages.hpp"

using shmem::Runtime;
using shmem::SymmetricHeap;
namespace api = shmem::api;

namespace {

/// The heap, for a call that is also a barrier for the caller's puts if it acts.
SymmetricHeap& heap(const char* call, bool acts) {
  Runtime& runtime = api::running_on_host(call);
  if (acts) {
    api::quiet();
  }
  return runtime.heap();
}

/// Undefined in the specification; other implementations round too.
void check_alignment(const char* call, std::size_t alignment, std::size_t size) {
  if (size != 0 && !std::has_single_bit(alignment)) {
    api::tolerate_on_first(api::running_on_host(call), call,
                           fmt::format("the alignment {} is not a power of two; the next one is used", alignment));
  }
}

/// A block at such an address, or NULL.
shmem::Result<void*> align(const char* call, std::size_t alignment, std::size_t size) {
  if (alignment == 0) {
    return shmem::fail(std::errc::invalid_argument, fmt::format("shmem: {}: the alignment is 0", call));
  }
  check_alignment(call, alignment, size);
  return heap(call, size != 0).align(alignment, size);
}

/// The result of a routine that returns NULL for wrong arguments or lack of memory. After any other error the barrier
/// did not take place and no later call can be relied on: ends the job. All PEs lack the memory together, so one of
/// them prints it.
void* block_or_null(const char* call, const shmem::Result<void*>& block) {
  if (block) {
    return *block;
  }
  const shmem::Error& error = block.error();
  const Runtime& runtime = api::running(call);
  if (error.code != std::errc::not_enough_memory && error.code != std::errc::invalid_argument) {
    runtime.end_job(error);
  }
  if (error.code == std::errc::not_enough_memory && runtime.my_pe() != 0) {
    api::report(error);
  } else {
    api::report_loudly(error);
  }
  return nullptr;
}

void release(const char* call, void* ptr) {
  const auto ok = heap(call, ptr != nullptr).free(ptr);
  if (ok) {
    return;
  }
  const Runtime& runtime = api::running(call);
  if (ok.error().code != std::errc::bad_address || runtime.checker() != nullptr) {
    runtime.end_job(ok.error());
  }
  if (runtime.my_pe() == 0) {
    api::warn_once(ok.error().text + "; nothing is freed");
  }
}

}  // namespace

// A routine that returns a block, by a call of the heap. `acts`: the call has something to do, and so is a barrier.
#define SHMEM_ALLOCATES(ROUTINE, name, call, parameters, acts, ...)                                  \
  ROUTINE(void*, name, parameters) try { return block_or_null(call, heap(call, acts).__VA_ARGS__); } \
  SHMEM_CATCH(void*)
#define SHMEM_ALIGNS(ROUTINE, name, call)                     \
  ROUTINE(void*, name, (size_t alignment, size_t size)) try { \
    return block_or_null(call, align(call, alignment, size)); \
  }                                                           \
  SHMEM_CATCH(void*)
SHMEM_ALLOCATES(SHMEM_ROUTINE, malloc, "shmem_malloc", (size_t size), size != 0, malloc(size))
SHMEM_ALLOCATES(SHMEM_ROUTINE, malloc_with_hints, "shmem_malloc_with_hints", (size_t size, long hints), size != 0,
                malloc_with_hints(size, static_cast<std::uint64_t>(hints)))
SHMEM_ALLOCATES(SHMEM_ROUTINE, calloc, "shmem_calloc", (size_t count, size_t size), count != 0 && size != 0,
                calloc(count, size))
SHMEM_ALLOCATES(SHMEM_ROUTINE, realloc, "shmem_realloc", (void* ptr, size_t size), ptr != nullptr || size != 0,
                realloc(ptr, size))
SHMEM_ALIGNS(SHMEM_ROUTINE, align, "shmem_align")
SHMEM_ALLOCATES(SHMEM_OLD_ROUTINE, shmalloc, "shmalloc", (size_t size), size != 0, malloc(size))
SHMEM_ALLOCATES(SHMEM_OLD_ROUTINE, shrealloc, "shrealloc", (void* ptr, size_t size), ptr != nullptr || size != 0,
                realloc(ptr, size))
SHMEM_ALIGNS(SHMEM_OLD_ROUTINE, shmemalign, "shmemalign")

SHMEM_ROUTINE(void, free, (void* ptr)) try { release("shmem_free", ptr); }
SHMEM_CATCH(void)

SHMEM_OLD_ROUTINE(void, shfree, (void* ptr)) try { release("shfree", ptr); }
SHMEM_CATCH(void)

extern "C" int shmemx_heap_stats(shmemx_heap_stats_t* stats) noexcept try {
  Runtime& runtime = api::running(__func__);
  if (stats == nullptr) {
    return api::report_loudly({std::errc::invalid_argument, "shmem: shmemx_heap_stats: stats is NULL"});
  }
  const shmem::Heap::Stats now = runtime.heap().stats();
  const shmem::Placement& placement = runtime.job().memory.placement();
  const std::string pages_reason = runtime.job().memory.pages_reason();
  const char* between = pages_reason.empty() || placement.numa_reason.empty() ? "" : "; ";
  stats->size = now.size;
  stats->used = now.used;
  stats->live_blocks = now.live_blocks;
  stats->largest_free = now.largest_free;
  std::snprintf(stats->pages, sizeof stats->pages, "%s", to_string(placement.pages).c_str());
  std::snprintf(stats->numa, sizeof stats->numa, "%s", placement.numa.c_str());
  std::snprintf(stats->reason, sizeof stats->reason, "%s%s%s", pages_reason.c_str(), between,
                placement.numa_reason.c_str());
  return 0;
}
SHMEM_CATCH(int)
