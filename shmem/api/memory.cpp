// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.3: the symmetric heap.
#include <cstdio>

#include "shmem/api/far.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/memory/huge_pages.hpp"

using shmem::Context;
using shmem::SymmetricHeap;
namespace api = shmem::api;

namespace {

/// The heap, for a call that is a barrier for the caller's puts too.
SymmetricHeap& heap(const char* call) {
  Context& context = api::running_on_host(call);
  api::quiet();
  return context.heap();
}

/// What a routine gives that gives NULL for what can be called wrong or too much. Anything else that goes wrong is a
/// barrier that was not one, and no later call can be relied on.
void* block_or_null(const char* call, const shmem::Result<void*>& block) {
  if (block) {
    return *block;
  }
  const shmem::Error& error = block.error();
  if (error.code != std::errc::not_enough_memory && error.code != std::errc::invalid_argument) {
    api::running(call).end_job(EXIT_FAILURE, error.text);
  }
  api::report_loudly(error);
  return nullptr;
}

void* allocate(const char* call, std::size_t size) {
  return block_or_null(call, heap(call).malloc(size));
}

void* align(const char* call, std::size_t alignment, std::size_t size) {
  return block_or_null(call, heap(call).align(alignment, size));
}

void* reallocate(const char* call, void* ptr, std::size_t size) {
  return block_or_null(call, heap(call).realloc(ptr, size));
}

void release(const char* call, void* ptr) {
  if (auto ok = heap(call).free(ptr); !ok) {
    api::running(call).end_job(EXIT_FAILURE, ok.error().text);
  }
}

}  // namespace

SHMEM_ROUTINE(void*, malloc, (size_t size)) {
  return allocate("shmem_malloc", size);
}

SHMEM_ROUTINE(void*, malloc_with_hints, (size_t size, long hints)) {
  constexpr const char* kCall = "shmem_malloc_with_hints";
  return block_or_null(kCall, heap(kCall).malloc_with_hints(size, static_cast<std::uint64_t>(hints)));
}

SHMEM_ROUTINE(void*, calloc, (size_t count, size_t size)) {
  constexpr const char* kCall = "shmem_calloc";
  return block_or_null(kCall, heap(kCall).calloc(count, size));
}

SHMEM_ROUTINE(void*, align, (size_t alignment, size_t size)) {
  return align("shmem_align", alignment, size);
}

SHMEM_ROUTINE(void*, realloc, (void* ptr, size_t size)) {
  return reallocate("shmem_realloc", ptr, size);
}

SHMEM_ROUTINE(void, free, (void* ptr)) {
  release("shmem_free", ptr);
}

SHMEM_OLD_ROUTINE(void*, shmalloc, (size_t size)) {
  return allocate("shmalloc", size);
}

SHMEM_OLD_ROUTINE(void*, shmemalign, (size_t alignment, size_t size)) {
  return align("shmemalign", alignment, size);
}

SHMEM_OLD_ROUTINE(void*, shrealloc, (void* ptr, size_t size)) {
  return reallocate("shrealloc", ptr, size);
}

SHMEM_OLD_ROUTINE(void, shfree, (void* ptr)) {
  release("shfree", ptr);
}

extern "C" int shmemx_heap_stats(shmemx_heap_stats_t* stats) noexcept {
  Context& context = api::running(__func__);
  if (stats == nullptr) {
    return api::report_loudly({std::errc::invalid_argument, "shmem: shmemx_heap_stats: stats is NULL"});
  }
  const shmem::Heap::Stats now = context.heap().stats();
  const shmem::Placement& placement = context.job().memory.placement();
  const std::string pages_reason = context.job().memory.pages_reason();
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
