// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.5 and 9.9: contexts and sessions.
#include "shmem/api/far.hpp"

#include "shmem/api/peer.hpp"

// NOLINTBEGIN(performance-no-int-to-ptr): handles look like addresses, and are none

using shmem::Context;
namespace api = shmem::api;

namespace shmem::api {

const Ctx& valid_ctx(const Context& context, const char* call, shmem_ctx_t ctx) {
  const Ctx* found = context.ctxs().find(reinterpret_cast<std::uintptr_t>(ctx));
  if (found == nullptr) {
    end_job(context, call,
            ctx == SHMEM_CTX_INVALID ? "the context is SHMEM_CTX_INVALID"
                                     : "the context was never made, or has been destroyed");
  }
  return *found;
}

void refuse_ctx_pe(const Context& context, const char* call, const Ctx& ctx, int pe) {
  end_job(context, call,
          "there is no PE " + std::to_string(pe) + " in the context's team of " + std::to_string(ctx.map.size));
}

}  // namespace shmem::api

namespace {

constexpr long kOptions = SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE;

int refuse(const char* call, std::errc code, const std::string& problem) {
  return api::report_loudly({code, std::string("shmem: ") + call + ": " + problem});
}

int create(const char* call, shmem_team_t team, long options, shmem_ctx_t* ctx) {
  Context& context = api::running(call);
  if (ctx == nullptr) {
    return refuse(call, std::errc::invalid_argument, "ctx is NULL");
  }
  *ctx = SHMEM_CTX_INVALID;
  if (team == SHMEM_TEAM_INVALID) {
    return -1;  // as the specification has it, and no mistake
  }
  const shmem::Team* found = context.teams().find(team);
  if (found == nullptr) {
    return refuse(call, std::errc::invalid_argument, std::to_string(team) + " is not a team of this PE");
  }
  if ((options & ~kOptions) != 0) {
    return refuse(call, std::errc::invalid_argument, "options " + std::to_string(options) + " has bits that name none");
  }
  const auto handle = context.ctxs().add({found->map(), team, options});
  if (!handle) {
    return refuse(call, std::errc::no_buffer_space,
                  "there are " + std::to_string(shmem::CtxTable::kMost) + " contexts already; destroy some");
  }
  *ctx = reinterpret_cast<shmem_ctx_t>(*handle);
  return 0;
}

void check_session(const char* call, shmem_ctx_t ctx) {
  const Context& context = api::running(call);
  if (ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID) {
    api::valid_ctx(context, call, ctx);
  }
}

}  // namespace

SHMEM_ROUTINE(int, ctx_create, (long options, shmem_ctx_t* ctx)) {
  return create("shmem_ctx_create", SHMEM_TEAM_WORLD, options, ctx);
}

SHMEM_ROUTINE(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx)) {
  return create("shmem_team_create_ctx", team, options, ctx);
}

SHMEM_ROUTINE(void, ctx_destroy, (shmem_ctx_t ctx)) {
  Context& context = api::running("shmem_ctx_destroy");
  if (ctx == SHMEM_CTX_INVALID) {
    return;
  }
  if (ctx == SHMEM_CTX_DEFAULT) {
    api::end_job(context, "shmem_ctx_destroy", "the default context cannot be destroyed");
  }
  api::valid_ctx(context, "shmem_ctx_destroy", ctx);
  api::quiet();
  context.ctxs().remove(reinterpret_cast<std::uintptr_t>(ctx));
}

SHMEM_ROUTINE(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team)) {
  const Context& context = api::running("shmem_ctx_get_team");
  if (team == nullptr) {
    return refuse("shmem_ctx_get_team", std::errc::invalid_argument, "team is NULL");
  }
  *team = SHMEM_TEAM_INVALID;
  if (ctx == SHMEM_CTX_INVALID) {
    return -1;
  }
  *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : api::valid_ctx(context, "shmem_ctx_get_team", ctx).team;
  return 0;
}

SHMEM_ROUTINE(void, ctx_session_start,
              (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config, long config_mask)) {
  constexpr const char* kCall = "shmem_ctx_session_start";
  check_session(kCall, ctx);
  if ((options & ~SHMEM_CTX_SESSION_BATCH) != 0) {
    api::end_job(api::running(kCall), kCall, "options " + std::to_string(options) + " has bits that name none");
  }
  if ((config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS) != 0 || (config_mask != 0 && config == nullptr)) {
    api::end_job(api::running(kCall), kCall,
                 "config_mask " + std::to_string(config_mask) + " names what config does not have");
  }
}

SHMEM_ROUTINE(void, ctx_session_stop, (shmem_ctx_t ctx)) {
  check_session("shmem_ctx_session_stop", ctx);
}

// NOLINTEND(performance-no-int-to-ptr)
