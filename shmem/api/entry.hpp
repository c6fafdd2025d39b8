// SPDX-License-Identifier: Apache-2.0
// What every entry point needs: its two names, the running library, and checks of arguments that name the call.
#pragma once

#include <string>

#include "shmem.h"
#include "shmem/context.hpp"
#include "shmemx.h"

// Defines routine `name` as pshmem_name with shmem_name as its weak alias (section 10), so that a profiling library can
// put itself between. The library itself calls neither.
#define SHMEM_ROUTINE(type, name, parameters) SHMEM_OLD_ROUTINE(type, shmem_##name, parameters)
// The same for names that do not begin with shmem_.
#define SHMEM_OLD_ROUTINE(type, name, parameters)                                             \
  extern "C" SHMEM_API type p##name parameters noexcept;                                      \
  extern "C" SHMEM_API type name parameters noexcept __attribute__((weak, alias("p" #name))); \
  extern "C" type p##name parameters noexcept

namespace shmem::api {

[[noreturn]] void refuse_before_start(const char* call);
/// The running library; ends the process with a message that names `call` if there is none.
inline Context& running(const char* call) {
  Context* context = Context::current();
  if (context == nullptr) [[unlikely]] {
    refuse_before_start(call);
  }
  return *context;
}

/// Keeps the text for shmemx_error_text and gives the negative errno.
int report(const Error& error);
/// Prints the text as well.
int report_loudly(const Error& error);

/// Ends the job: for calls that cannot report.
[[noreturn]] void end_job(const Context& context, const char* call, const std::string& problem);

/// Ends the process or the job: the library does not run, or there is no such PE.
[[noreturn]] void refuse_pe(const char* call, int pe);
// What check_pe and remote end the job with; not inlined, so that good arguments cost a comparison each.
[[noreturn]] void refuse_pe(const Context& context, const char* call, int pe);
[[noreturn]] void refuse_address(const Context& context, const char* call, const void* mine, std::size_t bytes, int pe);

/// Ends the job if `pe` is no PE of it.
inline void check_pe(const Context& context, const char* call, int pe) {
  // A negative one becomes larger than all.
  if (static_cast<unsigned>(pe) >= static_cast<unsigned>(context.n_pes())) [[unlikely]] {
    refuse_pe(context, call, pe);
  }
}

// With SHMEM_DEBUG; they end the job if it is not as it must be. REQUIRES: context.checker() != nullptr.
void check_symmetric(const Context& context, const char* call, const void* mine, std::size_t bytes);
void check_local(const Context& context, const char* call, const void* local, const void* mine, std::size_t bytes,
                 int pe);

/// `mine` as `pe` has it. Ends the job if `bytes` there are not symmetric, or `pe` is no PE. nullptr: it has, on
/// another node.
std::byte* remote(const Context& context, const char* call, const void* mine, std::size_t bytes, int pe);

[[noreturn]] void refuse_alignment(const Context& context, const char* call, std::size_t size);
/// Ends the job unless `mine`, which is reached atomically, is aligned to its size.
template <typename T>
void check_aligned(const Context& context, const char* call, const T* mine) {
  if (reinterpret_cast<std::uintptr_t>(mine) % sizeof(T) != 0) [[unlikely]] {
    refuse_alignment(context, call, sizeof(T));
  }
}

/// The team; ends the job if it is none.
Team& valid_team(Context& context, const char* call, shmem_team_t team);

}  // namespace shmem::api
