// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.12: the order of puts, and their completion.
#include "shmem/api/remote.hpp"

#include "shmem/api/peer.hpp"

namespace api = shmem::api;

namespace shmem::api {

void fence(const Runtime& runtime, const Ctx& ctx) {
  shmem::fence();
  if (runtime.job().on_several_nodes()) {
    remote_fence(PeChoice(ctx.used));
  }
}

void quiet(const Runtime& runtime, const Ctx& ctx) {
  shmem::quiet();
  if (!runtime.job().on_several_nodes()) {
    return;
  }
  remote_quiet(PeChoice(ctx.used));
  // Other threads may have begun an operation on a context that they share, after this one was completed.
  if ((ctx.options & (SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE)) != 0) {
    ctx.used.clear();
  }
}

}  // namespace shmem::api

namespace {

/// Nothing is done for SHMEM_CTX_INVALID (section 9.12).
bool is_invalid(shmem_ctx_t ctx) {
  return ctx == SHMEM_CTX_INVALID;  // NOLINT(performance-no-int-to-ptr)
}

void check_list(const char* call, const int* pes, std::size_t count) {
  if (pes == nullptr && count != 0) {
    api::end_job(api::running(call), call, "no list of PEs was given");
  }
}

/// Completes what was begun on PEs of the world. Ends the job if one does not exist.
void quiet_pes(const char* call, const int* pes, std::size_t count) {
  check_list(call, pes, count);
  const shmem::Runtime& runtime = api::running(call);
  shmem::PeSet set(runtime.n_pes());
  for (std::size_t i = 0; i < count; ++i) {
    set.add(api::peer(call, pes[i]).pe);
  }
  shmem::quiet();
  if (runtime.job().on_several_nodes()) {
    api::remote_quiet(shmem::PeChoice(set));
  }
}

/// The same for PEs of the context's team, of what was begun on the context.
void quiet_pes(const char* call, shmem_ctx_t ctx, const int* pes, std::size_t count) {
  check_list(call, pes, count);
  const shmem::Runtime& runtime = api::running(call);
  const shmem::Ctx& found = api::valid_ctx(runtime, call, ctx);
  shmem::PeSet set(runtime.n_pes());
  for (std::size_t i = 0; i < count; ++i) {
    if (pes[i] < 0 || pes[i] >= found.map.size) {
      api::refuse_ctx_pe(runtime, call, found, pes[i]);
    }
    if (const int pe = found.map.pe(pes[i]); found.used.contains(pe)) {
      set.add(pe);
    }
  }
  shmem::quiet();
  if (runtime.job().on_several_nodes()) {
    api::remote_quiet(shmem::PeChoice(set));
  }
}

}  // namespace

SHMEM_ROUTINE(void, fence, (void)) try { api::fence(); }
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, ctx_fence, (shmem_ctx_t ctx)) try {
  constexpr const char* kCall = "shmem_ctx_fence";
  if (ctx == SHMEM_CTX_DEFAULT) {
    api::fence();
  } else if (!is_invalid(ctx)) {
    const shmem::Runtime& runtime = api::running(kCall);
    api::fence(runtime, api::valid_ctx(runtime, kCall, ctx));
  }
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, quiet, (void)) try { api::quiet(); }
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, ctx_quiet, (shmem_ctx_t ctx)) try {
  constexpr const char* kCall = "shmem_ctx_quiet";
  if (ctx == SHMEM_CTX_DEFAULT) {
    api::quiet();
  } else if (!is_invalid(ctx)) {
    const shmem::Runtime& runtime = api::running(kCall);
    api::quiet(runtime, api::valid_ctx(runtime, kCall, ctx));
  }
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, pe_quiet, (const int* target_pes, size_t npes)) try {
  quiet_pes("shmem_pe_quiet", target_pes, npes);
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes)) try {
  constexpr const char* kCall = "shmem_ctx_pe_quiet";
  if (ctx == SHMEM_CTX_DEFAULT) {
    quiet_pes(kCall, target_pes, npes);
  } else if (!is_invalid(ctx)) {
    quiet_pes(kCall, ctx, target_pes, npes);
  }
}
SHMEM_CATCH(void)
