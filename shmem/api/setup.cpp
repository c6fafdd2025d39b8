// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.1: set-up, exit, query, with the names from before OpenSHMEM 1.2; and the hook for profiling
// libraries. Several routines have two names: the library itself calls neither.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shmem/api/gathering.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/api/remote.hpp"
#include "shmem/api/stream.hpp"
#include "shmem/config/failure.hpp"
#include "shmem/config/log.hpp"

using shmem::Runtime;
namespace api = shmem::api;

namespace {

void log_fatal(const std::string& text) {
  shmem::log(shmem::LogLevel::kFatal, "%s", text.c_str());
}

/// Starts the library as the environment says. An Error has been printed by `print`, unless errors return.
shmem::Result<void> try_to_start(int thread_level, void (*print)(const std::string& text)) {
  if (Runtime::current() != nullptr) {
    Runtime::current()->retain(thread_level);
    return {};
  }
  auto ok = Runtime::start(thread_level);
  if (!ok && Runtime::is_reporter() && !shmem::errors_return()) {
    print(ok.error().text);
  }
  return ok;
}

/// The same; ends the process on failure.
void start() {
  if (const auto ok = try_to_start(SHMEM_THREAD_SINGLE, shmem::log_last_words); !ok) {
    shmem::end_process_for(shmem::errors_return() ? ok.error() : shmem::Error{}, EXIT_FAILURE,
                           shmem::ProcessEnd::kWithExitHandlers);
  }
}

/// An Error, if errors return, does not keep the library from ending.
shmem::Result<void> quiet_before_end() {
  try {
    api::quiet();
    return {};
  } catch (const shmem::CallFailure& failure) {
    return failure.error;
  }
}

// -1 before the start.
int number_of_pe() {
  return Runtime::current() != nullptr ? Runtime::current()->my_pe() : -1;
}
int number_of_pes() {
  return Runtime::current() != nullptr ? Runtime::current()->n_pes() : -1;
}

/// False with a message if `place` is NULL.
bool has_place(const char* call, const char* argument, const void* place) {
  if (place == nullptr) {
    shmem::log(shmem::LogLevel::kError, "shmem: %s: %s is NULL", call, argument);
  }
  return place != nullptr;
}

}  // namespace

SHMEM_ROUTINE(void, init, (void)) try { start(); }
SHMEM_CATCH(void)

SHMEM_ROUTINE(int, init_thread, (int requested, int* provided)) try {
  constexpr const char* kCall = "shmem_init_thread";
  if (!has_place(kCall, "provided", provided)) {
    return api::report({std::errc::invalid_argument, "shmem: shmem_init_thread: provided is NULL"});
  }
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
    return api::report_loudly(
        {std::errc::invalid_argument,
         fmt::format("shmem: shmem_init_thread: {} is not a thread level (SHMEM_THREAD_SINGLE = 0 to "
                     "SHMEM_THREAD_MULTIPLE = 3)",
                     requested)});
  }
  if (auto ok = try_to_start(requested, log_fatal); !ok) {
    return api::report(ok.error());
  }
  *provided = Runtime::current()->thread_level();
  return 0;
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(void, query_thread, (int* provided)) {
  if (has_place("shmem_query_thread", "provided", provided)) {
    *provided = Runtime::current() != nullptr ? Runtime::current()->thread_level() : SHMEM_THREAD_SINGLE;
  }
}

SHMEM_ROUTINE(void, query_initialized, (int* initialized)) {
  if (has_place("shmem_query_initialized", "initialized", initialized)) {
    *initialized = Runtime::is_initialized() ? 1 : 0;
  }
}

SHMEM_ROUTINE(void, finalize, (void)) try {
  constexpr const char* kCall = "shmem_finalize";
  if (Runtime::current() == nullptr || Runtime::is_exiting()) {
    return;
  }
  const bool is_last = api::running_on_host(kCall).release();
  if (!is_last) {
    api::quiet();
    api::sync_world(kCall);
    return;
  }
  api::await_streams();
  const auto puts = quiet_before_end();
  if (auto ok = Runtime::stop(); !ok || !puts) {
    shmem::end_process_for(ok ? puts.error() : ok.error(), EXIT_FAILURE, shmem::ProcessEnd::kWithExitHandlers);
  }
}
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, global_exit, (int status)) {
  if (Runtime::current() == nullptr && shmem::errors_return()) {
    std::exit(status);  // NOLINT(concurrency-mt-unsafe): it does not return, so it cannot return an error
  }
  Runtime& runtime = api::running("shmem_global_exit");
  runtime.exit_job(status, fmt::format("shmem: PE {} called shmem_global_exit({})", runtime.my_pe(), status));
}

SHMEM_ROUTINE(int, my_pe, (void)) {
  return number_of_pe();
}

SHMEM_ROUTINE(int, n_pes, (void)) {
  return number_of_pes();
}

SHMEM_OLD_ROUTINE(void, start_pes, (int /*npes*/)) try {
  // Unlike shmem_init: a further call has no effect, and needs no shmem_finalize.
  if (Runtime::current() == nullptr) {
    start();
  }
}
SHMEM_CATCH(void)

SHMEM_OLD_ROUTINE(int, _my_pe, (void)) {
  return number_of_pe();
}

SHMEM_OLD_ROUTINE(int, _num_pes, (void)) {
  return number_of_pes();
}

SHMEM_ROUTINE(void, pcontrol, (int /*level*/, ...)) {}

SHMEM_ROUTINE(int, pe_accessible, (int pe)) try {
  return pe >= 0 && pe < api::running("shmem_pe_accessible").n_pes() ? 1 : 0;
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, addr_accessible, (const void* addr, int pe)) try {
  const Runtime& runtime = api::running("shmem_addr_accessible");
  if (pe < 0 || pe >= runtime.n_pes()) {
    return 0;
  }
  return runtime.translate(addr, pe) != nullptr || runtime.is_copied(addr, pe) || runtime.is_symmetric_remote(addr, pe)
             ? 1
             : 0;
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(void*, ptr, (const void* dest, int pe)) try {
  const Runtime& runtime = api::running("shmem_ptr");
  return pe >= 0 && pe < runtime.n_pes() ? runtime.translate(dest, pe) : nullptr;
}
SHMEM_CATCH(void*)

SHMEM_ROUTINE(void*, team_ptr, (shmem_team_t team, const void* dest, int pe)) try {
  Runtime& runtime = api::running("shmem_team_ptr");
  const shmem::Team* found = api::find_team(runtime, team);
  return found != nullptr && pe >= 0 && pe < found->size() ? runtime.translate(dest, found->map().pe(pe)) : nullptr;
}
SHMEM_CATCH(void*)

SHMEM_ROUTINE(void, info_get_version, (int* major, int* minor)) {
  if (has_place("shmem_info_get_version", "major", major) && has_place("shmem_info_get_version", "minor", minor)) {
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
  }
}

SHMEM_ROUTINE(void, info_get_name, (char* name)) {
  if (has_place("shmem_info_get_name", "name", name)) {
    std::snprintf(name, SHMEM_MAX_NAME_LEN, "%s", SHMEM_VENDOR_STRING);
  }
}

extern "C" {

void shmemx_set_logger(shmemx_logger_t logger) noexcept {
  shmem::set_log_handler(logger);
}

int shmemx_set_log_level(int level) noexcept try {
  if (level < SHMEMX_LOG_DEBUG || level > SHMEMX_LOG_FATAL) {
    return api::report_loudly({std::errc::invalid_argument,
                               fmt::format("shmem: shmemx_set_log_level: {} is not a level (SHMEMX_LOG_DEBUG = 0 to "
                                           "SHMEMX_LOG_FATAL = 4)",
                                           level)});
  }
  shmem::set_log_level(static_cast<shmem::LogLevel>(level));
  return 0;
}
SHMEM_CATCH(int)
}
