// SPDX-License-Identifier: Apache-2.0
// What every entry point needs: its two names, the running library, and checks of arguments that name the call.
#pragma once

#include <string>

#include "shmem.h"
#include "shmem/context.hpp"
#include "shmemx.h"

// Defines routine `name` as pshmem_name with shmem_name as its weak alias (section 10), so that a profiling library can
// put itself between. The library itself calls neither.
#define SHMEM_ROUTINE(type, name, parameters)                                                               \
  extern "C" SHMEM_API type pshmem_##name parameters noexcept;                                              \
  extern "C" SHMEM_API type shmem_##name parameters noexcept __attribute__((weak, alias("pshmem_" #name))); \
  extern "C" type pshmem_##name parameters noexcept

namespace shmem::api {

/// The running library; ends the process with a message that names `call` if there is none.
Context& running(const char* call);

/// Keeps the text for shmemx_error_text and gives the negative errno.
int report(const Error& error);
/// Prints the text as well.
int report_loudly(const Error& error);

/// Ends the job: for calls that cannot report.
[[noreturn]] void end_job(const Context& context, const char* call, const std::string& problem);

/// Ends the job if `pe` is no PE of it.
void check_pe(const Context& context, const char* call, int pe);
/// `mine` as `pe` has it. Ends the job if `bytes` there are not inside the symmetric heap, or `pe` is no PE.
std::byte* remote(const Context& context, const char* call, const void* mine, std::size_t bytes, int pe);
/// The team; ends the job if it is none.
Team& valid_team(Context& context, const char* call, shmem_team_t team);

}  // namespace shmem::api
