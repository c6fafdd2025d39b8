// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.1: set-up, exit, query.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shmem/api/setup.hpp"

#include "shmem/api/far.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/log.hpp"
#include "shmem/version.hpp"

using shmem::Context;
namespace api = shmem::api;

void shmem::api::start(int thread_level) {
  if (Context::current() != nullptr) {
    Context::current()->nest(thread_level);
    return;
  }
  if (auto ok = Context::start(thread_level); !ok) {
    shmem::log(shmem::LogLevel::kFatal, "%s", ok.error().text.c_str());
    std::exit(EXIT_FAILURE);  // NOLINT(concurrency-mt-unsafe)
  }
}

namespace {

/// False with a message where a call has nowhere to put its answer.
bool has_place(const char* call, const char* argument, const void* place) {
  if (place == nullptr) {
    shmem::log(shmem::LogLevel::kError, "shmem: %s: %s is NULL", call, argument);
  }
  return place != nullptr;
}

}  // namespace

SHMEM_ROUTINE(void, init, (void)) {
  api::start();
}

SHMEM_ROUTINE(int, init_thread, (int requested, int* provided)) {
  constexpr const char* kCall = "shmem_init_thread";
  if (!has_place(kCall, "provided", provided)) {
    return api::report({std::errc::invalid_argument, "shmem: shmem_init_thread: provided is NULL"});
  }
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
    return api::report_loudly({std::errc::invalid_argument, "shmem: shmem_init_thread: " + std::to_string(requested) +
                                                                " is no thread level (SHMEM_THREAD_SINGLE = 0 to "
                                                                "SHMEM_THREAD_MULTIPLE = 3)"});
  }
  api::start(requested);
  *provided = Context::current()->thread_level();
  return 0;
}

SHMEM_ROUTINE(void, query_thread, (int* provided)) {
  if (has_place("shmem_query_thread", "provided", provided)) {
    *provided = Context::current() != nullptr ? Context::current()->thread_level() : SHMEM_THREAD_SINGLE;
  }
}

SHMEM_ROUTINE(void, query_initialized, (int* initialized)) {
  if (has_place("shmem_query_initialized", "initialized", initialized)) {
    *initialized = Context::current() != nullptr ? 1 : 0;
  }
}

SHMEM_ROUTINE(void, finalize, (void)) {
  if (Context::current() == nullptr || !api::running_on_host("shmem_finalize").unnest()) {
    return;
  }
  api::quiet();
  if (auto ok = Context::stop(); !ok) {
    shmem::log(shmem::LogLevel::kFatal, "%s", ok.error().text.c_str());
    std::exit(EXIT_FAILURE);  // NOLINT(concurrency-mt-unsafe)
  }
}

SHMEM_ROUTINE(void, global_exit, (int status)) {
  const Context& context = api::running("shmem_global_exit");
  context.end_job(status, "shmem: PE " + std::to_string(context.my_pe()) + " called shmem_global_exit(" +
                              std::to_string(status) + ")");
}

SHMEM_ROUTINE(int, my_pe, (void)) {
  return api::my_pe();
}

SHMEM_ROUTINE(int, n_pes, (void)) {
  return api::n_pes();
}

SHMEM_ROUTINE(int, pe_accessible, (int pe)) {
  return pe >= 0 && pe < api::running("shmem_pe_accessible").n_pes() ? 1 : 0;
}

SHMEM_ROUTINE(int, addr_accessible, (const void* addr, int pe)) {
  const Context& context = api::running("shmem_addr_accessible");
  if (pe < 0 || pe >= context.n_pes()) {
    return 0;
  }
  return context.translate(addr, pe) != nullptr || context.is_symmetric_far(addr, pe) ? 1 : 0;
}

SHMEM_ROUTINE(void*, ptr, (const void* dest, int pe)) {
  const Context& context = api::running("shmem_ptr");
  return pe >= 0 && pe < context.n_pes() ? context.translate(dest, pe) : nullptr;
}

SHMEM_ROUTINE(void*, team_ptr, (shmem_team_t team, const void* dest, int pe)) {
  Context& context = api::running("shmem_team_ptr");
  const shmem::Team* found = context.teams().find(team);
  return found != nullptr && pe >= 0 && pe < found->size() ? context.translate(dest, found->map().pe(pe)) : nullptr;
}

SHMEM_ROUTINE(void, info_get_version, (int* major, int* minor)) {
  if (has_place("shmem_info_get_version", "major", major) && has_place("shmem_info_get_version", "minor", minor)) {
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
  }
}

SHMEM_ROUTINE(void, info_get_name, (char* name)) {
  if (has_place("shmem_info_get_name", "name", name)) {
    std::snprintf(name, SHMEM_MAX_NAME_LEN, "%s %s", SHMEM_VENDOR_STRING, shmem::kVersion);
  }
}

extern "C" {

void shmemx_set_logger(shmemx_logger_t logger) noexcept {
  shmem::set_log_handler(logger);
}

int shmemx_set_log_level(int level) noexcept {
  if (level < SHMEMX_LOG_DEBUG || level > SHMEMX_LOG_FATAL) {
    return api::report_loudly({std::errc::invalid_argument, "shmem: shmemx_set_log_level: " + std::to_string(level) +
                                                                " is no level (SHMEMX_LOG_DEBUG = 0 to "
                                                                "SHMEMX_LOG_FATAL = 4)"});
  }
  shmem::set_log_level(static_cast<shmem::LogLevel>(level));
  return 0;
}
}
