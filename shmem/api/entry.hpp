// SPDX-License-Identifier: Apache-2.0
// Needed by every entry point: its two names, the running library, and argument checks that name the call.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "shmem.h"
#include "shmem/runtime/runtime.hpp"
#include "shmemx.h"
#include "shmemx_interface.h"

// Defines routine `name` as pshmem_name with shmem_name as its weak alias (section 10), so that a profiling library can
// intercept it. The library itself calls neither.
#define SHMEM_ROUTINE(type, name, parameters) SHMEM_OLD_ROUTINE(type, shmem_##name, parameters)
// The same for names that do not begin with shmem_.
#define SHMEM_OLD_ROUTINE(type, name, parameters)                                                  \
  extern "C" SHMEM_API type p##name parameters SHMEM_NOTHROW;                                      \
  extern "C" SHMEM_API type name parameters SHMEM_NOTHROW __attribute__((weak, alias("p" #name))); \
  extern "C" type p##name parameters SHMEM_NOTHROW

// After the body of a routine, a function-try-block: records what unwound it, for programs that have errors returned.
// The routine then returns a negative errno if its result is an int, else NULL or 0.
#define SHMEM_CATCH(type)                       \
  catch (...) {                                 \
    return ::shmem::api::after_failure<type>(); \
  }

namespace shmem::api {

/// In a catch handler: keeps the error for shmemx_take_error and shmemx_error_text, and returns the negative errno.
int catch_failure();
template <typename T>
[[gnu::cold, gnu::noinline]] T after_failure() {
  [[maybe_unused]] const int code = catch_failure();
  if constexpr (std::is_same_v<T, int>) {
    return code;
  } else if constexpr (!std::is_void_v<T>) {
    return T{};
  }
}

[[noreturn]] void refuse_before_start(const char* call);
/// The running library; if it does not run, ends the process (or throws, if errors return) with a message that names
/// `call`.
inline Runtime& running(const char* call) {
  Runtime* runtime = Runtime::current();
  if (runtime == nullptr) [[unlikely]] {
    refuse_before_start(call);
  }
  return *runtime;
}

/// Keeps the text for shmemx_error_text and returns the negative errno.
int report(const Error& error);
/// 0, or report() of the Error.
inline int code_of(const Result<void>& result) {
  return result ? 0 : report(result.error());
}
/// As report(), and prints the text, unless errors return: then the program does.
int report_loudly(const Error& error);

/// For calls that cannot report: ends the job. Wherever a comment of this folder says so, the call fails with that
/// error instead if errors return (Runtime::end_job).
[[noreturn]] void end_job(const Runtime& runtime, const char* call, const std::string& problem);
/// With an errno of its own.
[[noreturn]] void end_job(const Runtime& runtime, const char* call, const Error& problem);
template <typename... Values>
[[noreturn, gnu::cold]] void end_job(const Runtime& runtime, const char* call,
                                     fmt::format_string<const Values&...> problem,
                                     const Values&... values) requires(sizeof...(values) > 0) {
  end_job(runtime, call, fmt::format(problem, values...));
}

/// Misuse that the specification leaves undefined and the library can bear: a warning, once for each text. With
/// SHMEM_DEBUG it ends the job.
void tolerate(const Runtime& runtime, const char* call, const std::string& problem);
/// The same for a collective call: only the first PE of the job warns.
void tolerate_on_first(const Runtime& runtime, const char* call, const std::string& problem);
void warn_once(const std::string& text);

/// The error of a call with a wrong argument, which names PE and call.
Error invalid(const Runtime& runtime, const char* call, const std::string& problem);
std::string not_a_team(shmem_team_t team);

/// The slot of a handle, which is shmemx_team_by_number(slot) and never dereferenced. SHMEM_TEAM_INVALID and pointers
/// to anything give a number beyond the last slot.
inline std::size_t slot_of(shmem_team_t team) {
  return reinterpret_cast<std::uintptr_t>(team) - 1;
}
/// The live team, or nullptr.
inline Team* find_team(Runtime& runtime, shmem_team_t team) {
  return runtime.teams().find(slot_of(team));
}

/// Ends the process or the job: the library does not run, or there is no such PE.
[[noreturn]] void refuse_pe(const char* call, int pe);
// How check_pe and remote end the job; not inlined, so that valid arguments cost one comparison each.
[[noreturn]] void refuse_pe(const Runtime& runtime, const char* call, int pe);
[[noreturn]] void refuse_address(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes, int pe);

/// Ends the job if it has no PE `pe`.
inline void check_pe(const Runtime& runtime, const char* call, int pe) {
  // A negative number compares as larger than all PEs.
  if (static_cast<unsigned>(pe) >= static_cast<unsigned>(runtime.n_pes())) [[unlikely]] {
    refuse_pe(runtime, call, pe);
  }
}

// With SHMEM_DEBUG; end the job if a check fails. REQUIRES: runtime.checker() != nullptr.
void check_symmetric(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes);
void check_local(const Runtime& runtime, const char* call, const void* local, const void* mine, std::size_t bytes,
                 int pe);

/// Where a variable of this PE is: "at 0x7f0000000040, offset 64 of the symmetric heap".
std::string place_text(const Runtime& runtime, const void* mine);

/// The address of `mine` in `pe`; nullptr if `pe` is on another node. Ends the job if `bytes` there are not symmetric,
/// or there is no such PE.
std::byte* remote(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes, int pe);

/// The same for a copy; nullptr also if the PE is on this node, but only copies by the kernel reach its memory
/// (copied.hpp).
std::byte* remote_if_mapped(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes, int pe);

[[noreturn]] void refuse_alignment(const Runtime& runtime, const char* call, const void* mine, std::size_t size);
/// Ends the job unless `mine`, which is accessed atomically, is aligned to its size.
template <typename T>
void check_aligned(const Runtime& runtime, const char* call, const T* mine) {
  if (reinterpret_cast<std::uintptr_t>(mine) % sizeof(T) != 0) [[unlikely]] {
    refuse_alignment(runtime, call, mine, sizeof(T));
  }
}

/// The team; ends the job if the handle is invalid.
Team& valid_team(Runtime& runtime, const char* call, shmem_team_t team);

}  // namespace shmem::api
