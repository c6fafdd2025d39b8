// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.12: the order of puts, and their completion.
#include "shmem/api/remote.hpp"

#include "shmem/api/peer.hpp"

namespace api = shmem::api;

namespace {

/// Section 9.12: nothing is done for SHMEM_CTX_INVALID.
bool is_valid(const char* call, shmem_ctx_t ctx) {
  if (ctx == SHMEM_CTX_INVALID) {  // NOLINT(performance-no-int-to-ptr)
    return false;
  }
  if (ctx != SHMEM_CTX_DEFAULT) {
    api::valid_ctx(api::running(call), call, ctx);
  }
  return true;
}

/// PEs of the world or of the context's team; ends the job if one does not exist.
template <typename... Ctx>
void check_pes(const char* call, const int* pes, std::size_t count, Ctx... ctx) {
  if (pes == nullptr && count != 0) {
    api::end_job(api::running(call), call, "no list of PEs was given");
  }
  for (std::size_t i = 0; i < count; ++i) {
    api::peer(call, ctx..., pes[i]);
  }
}

}  // namespace

SHMEM_ROUTINE(void, fence, (void)) {
  api::fence();
}

SHMEM_ROUTINE(void, ctx_fence, (shmem_ctx_t ctx)) {
  if (is_valid("shmem_ctx_fence", ctx)) {
    api::fence();
  }
}

SHMEM_ROUTINE(void, quiet, (void)) {
  api::quiet();
}

SHMEM_ROUTINE(void, ctx_quiet, (shmem_ctx_t ctx)) {
  if (is_valid("shmem_ctx_quiet", ctx)) {
    api::quiet();
  }
}

SHMEM_ROUTINE(void, pe_quiet, (const int* target_pes, size_t npes)) {
  check_pes("shmem_pe_quiet", target_pes, npes);
  api::quiet();
}

SHMEM_ROUTINE(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes)) {
  if (is_valid("shmem_ctx_pe_quiet", ctx)) {
    check_pes("shmem_ctx_pe_quiet", target_pes, npes, ctx);
    api::quiet();
  }
}
