// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.5 and 9.9: contexts and sessions.
#include "shmem/api/remote.hpp"

#include "shmem/api/peer.hpp"

// NOLINTBEGIN(performance-no-int-to-ptr): handles look like addresses, and are none

using shmem::Runtime;
namespace api = shmem::api;

namespace shmem::api {

const Ctx& valid_ctx(const Runtime& runtime, const char* call, shmem_ctx_t ctx) {
  const Ctx* found = runtime.ctxs().find(reinterpret_cast<std::uintptr_t>(ctx));
  if (found == nullptr) {
    end_job(runtime, call,
            ctx == SHMEM_CTX_INVALID ? "the context is SHMEM_CTX_INVALID"
                                     : "the context was never made, or has been destroyed");
  }
  return *found;
}

void refuse_ctx_pe(const Runtime& runtime, const char* call, const Ctx& ctx, int pe) {
  end_job(runtime, call, "there is no PE {} in the context's team of {}", pe, ctx.map.size);
}

}  // namespace shmem::api

namespace {

constexpr long kOptions = SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE;

int refuse(const char* call, std::errc code, const std::string& problem) {
  return api::report_loudly({code, std::string("shmem: ") + call + ": " + problem});
}

int create(const char* call, shmem_team_t team, long options, shmem_ctx_t* ctx) {
  Runtime& runtime = api::running(call);
  if (ctx == nullptr) {
    return refuse(call, std::errc::invalid_argument, "ctx is NULL");
  }
  *ctx = SHMEM_CTX_INVALID;
  if (team == SHMEM_TEAM_INVALID) {
    return -1;  // as the specification has it, and no mistake
  }
  const shmem::Team* found = api::find_team(runtime, team);
  if (found == nullptr) {
    return refuse(call, std::errc::invalid_argument, api::not_a_team(team));
  }
  if ((options & ~kOptions) != 0) {
    return refuse(call, std::errc::invalid_argument, fmt::format("options {} has unknown bits", options));
  }
  const auto handle = runtime.ctxs().add(
      {found->map(), found->slot(), options, shmem::PeSet(runtime.job().on_several_nodes() ? runtime.n_pes() : 0)});
  if (!handle) {
    return refuse(call, std::errc::no_buffer_space,
                  fmt::format("there are {} contexts already; destroy some", shmem::CtxTable::kMost));
  }
  *ctx = reinterpret_cast<shmem_ctx_t>(*handle);
  return 0;
}

/// False for SHMEM_CTX_INVALID, for which nothing is done (section 9.9).
bool has_session(const char* call, shmem_ctx_t ctx) {
  const Runtime& runtime = api::running(call);
  if (ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID) {
    api::valid_ctx(runtime, call, ctx);
  }
  return ctx != SHMEM_CTX_INVALID;
}

}  // namespace

SHMEM_ROUTINE(int, ctx_create, (long options, shmem_ctx_t* ctx)) try {
  return create("shmem_ctx_create", SHMEM_TEAM_WORLD, options, ctx);
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx)) try {
  return create("shmem_team_create_ctx", team, options, ctx);
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(void, ctx_destroy, (shmem_ctx_t ctx)) try {
  Runtime& runtime = api::running("shmem_ctx_destroy");
  if (ctx == SHMEM_CTX_INVALID) {
    return;
  }
  if (ctx == SHMEM_CTX_DEFAULT) {
    api::end_job(runtime, "shmem_ctx_destroy", "the default context cannot be destroyed");
  }
  api::quiet(runtime, api::valid_ctx(runtime, "shmem_ctx_destroy", ctx));
  runtime.ctxs().remove(reinterpret_cast<std::uintptr_t>(ctx));
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team)) try {
  const Runtime& runtime = api::running("shmem_ctx_get_team");
  if (team == nullptr) {
    return refuse("shmem_ctx_get_team", std::errc::invalid_argument, "team is NULL");
  }
  *team = SHMEM_TEAM_INVALID;
  if (ctx == SHMEM_CTX_INVALID) {
    return -1;
  }
  *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD
                                   : shmemx_team_by_number(api::valid_ctx(runtime, "shmem_ctx_get_team", ctx).team);
  return 0;
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(void, ctx_session_start,
              (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config, long config_mask))
try {
  constexpr const char* kCall = "shmem_ctx_session_start";
  if (!has_session(kCall, ctx)) {
    return;
  }
  if ((options & ~SHMEM_CTX_SESSION_BATCH) != 0) {
    // Options are hints: section 9.9 lets no combination of them be undefined.
    api::tolerate(api::running(kCall), kCall, fmt::format("options {} has unknown bits, which are ignored", options));
  }
  if ((config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS) != 0 || (config_mask != 0 && config == nullptr)) {
    api::end_job(api::running(kCall), kCall, "config_mask {} names unknown members, or config is NULL", config_mask);
  }
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, ctx_session_stop, (shmem_ctx_t ctx)) try { has_session("shmem_ctx_session_stop", ctx); }
SHMEM_CATCH(void)

// NOLINTEND(performance-no-int-to-ptr)
