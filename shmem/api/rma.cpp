// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.6 and 9.12: copies to and from a PE, and their order. All PEs are reached by load and
// store.
#include <cstring>

#include "shmem/api/entry.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem/memory/ordering.hpp"
#include "shmem/memory/parking.hpp"

namespace api = shmem::api;

SHMEM_ROUTINE(void, putmem, (void* dest, const void* source, size_t nelems, int pe)) {
  const shmem::Context& context = api::running("shmem_putmem");
  shmem::copy_bytes(api::remote(context, "shmem_putmem", dest, nelems, pe), source, nelems);
  shmem::wake_parked(context.job(), pe);
}

SHMEM_ROUTINE(void, getmem, (void* dest, const void* source, size_t nelems, int pe)) {
  const shmem::Context& context = api::running("shmem_getmem");
  // Through the cache: what was fetched is for this PE to use.
  if (nelems != 0) {
    std::memcpy(dest, api::remote(context, "shmem_getmem", source, nelems, pe), nelems);
  }
}

SHMEM_ROUTINE(void, fence, (void)) {
  shmem::fence();
}

SHMEM_ROUTINE(void, quiet, (void)) {
  shmem::quiet();
}
