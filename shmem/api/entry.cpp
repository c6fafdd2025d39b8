// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.hpp"
#include "shmem/api/peer.hpp"
#include "shmem/config/error_text.hpp"
#include "shmem/config/failure.hpp"
#include "shmem/config/log.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

namespace shmem::api {
namespace {

/// The errno of the thread's first failed call without a result since it last took one; 0: none.
int& recorded_code() {
  static thread_local int code = 0;
  return code;
}

/// "PE 3: " before the start of the library, when only the launcher's variables tell it; "" without a launcher.
std::string who() {
  for (const char* name : {"OSHRUN_RANK", "PMIX_RANK", "SHMEM_UID_RANK"}) {
    // As everywhere in the library, the program does not change its environment in another thread.
    const char* rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (rank != nullptr && *rank != '\0' &&
        std::string_view(rank).find_first_not_of("0123456789") == std::string::npos) {
      return fmt::format("PE {}: ", rank);
    }
  }
  return "";
}

/// More about an address that is not symmetric.
std::string whose(const Runtime& runtime, const void* address) {
  const Job& job = runtime.job();
  if (const int number = job.other_heap_with(address, 1); number >= 0) {
    return fmt::format("; {} is what shmem_ptr gives for PE {}: give the address that this PE has for the object",
                       address, job.nodes.world(number));
  }
  return fmt::format("; the address is {}", address);
}

/// The bytes begin in registered memory.
[[noreturn]] void refuse_registered(const Runtime& runtime, const char* call, const RegisteredMemory::Found& found,
                                    std::size_t bytes, int pe) {
  if (bytes > found.room) {
    end_job(runtime, call, "{} from byte {} on of registered memory reach beyond its end; there are {}",
            base::count(bytes, "byte"), found.offset, found.room);
  }
  end_job(runtime, call,
          "the registered memory of PE {} is private to its process: only puts and gets reach it; to make it shared, "
          "register the mapping of a memfd on that PE",
          pe);
}

}  // namespace

void refuse_before_start(const char* call) {
  const int parent = Runtime::parent_pe();
  end_process_for(
      {std::errc::operation_not_permitted,
       parent >= 0
           ? fmt::format(
                 "shmem: {} was called in a process that PE {} has forked: that is no PE; make the call in PE {}", call,
                 parent, parent)
           : fmt::format("shmem: {}{} was called before shmem_init or after shmem_finalize", who(), call)},
      EXIT_FAILURE, ProcessEnd::kWithExitHandlers);
}

int report(const Error& error) {
  return keep_error(error);
}

int report_loudly(const Error& error) {
  if (const Runtime* const runtime = Runtime::current(); !errors_return()) {
    runtime != nullptr ? runtime->log_failed_call(error) : log_failed_call(error.text);
  }
  return report(error);
}

void end_job(const Runtime& runtime, const char* call, const std::string& problem) {
  runtime.end_job(invalid(runtime, call, problem));
}

void end_job(const Runtime& runtime, const char* call, const Error& problem) {
  runtime.end_job({problem.code, fmt::format("shmem: PE {}: {}: {}", runtime.my_pe(), call, problem.text)});
}

int catch_failure() {
  Error error;
  try {
    throw;
  } catch (const CallFailure& failure) {
    error = failure.error;
  } catch (const std::bad_alloc&) {
    if (!errors_return()) {
      throw;  // ends the process
    }
    error = {std::errc::not_enough_memory, "shmem: out of memory"};
  }
  if (recorded_code() == 0) {
    recorded_code() = static_cast<int>(error.code);
  }
  return report(error);
}

void tolerate(const Runtime& runtime, const char* call, const std::string& problem) {
  if (runtime.checker() != nullptr) {
    end_job(runtime, call, problem);
  }
  warn_once(fmt::format("shmem: PE {}: {}: {}", runtime.my_pe(), call, problem));
}

void warn_once(const std::string& text) {
  if (Runtime::current()->first_notice(text)) {
    log(LogLevel::kWarn, "%s", text.c_str());
  }
}

void tolerate_on_first(const Runtime& runtime, const char* call, const std::string& problem) {
  if (runtime.my_pe() == 0 || runtime.checker() != nullptr) {
    tolerate(runtime, call, problem);
  }
}

Error invalid(const Runtime& runtime, const char* call, const std::string& problem) {
  return {std::errc::invalid_argument, fmt::format("shmem: PE {}: {}: {}", runtime.my_pe(), call, problem)};
}

std::string not_a_team(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) {
    return "SHMEM_TEAM_INVALID is not a team of this PE";
  }
  // A number that fits is one, as users of shmemx_team_by_number know the team; others are pointers to something else.
  const int number = shmemx_team_number(team);
  return (shmemx_team_by_number(number) == team ? std::to_string(number)
                                                : fmt::format("{}", static_cast<const void*>(team))) +
         " is not a team of this PE";
}

void refuse_pe(const Runtime& runtime, const char* call, int pe) {
  end_job(runtime, call, "there is no PE {} in this job of {}", pe, runtime.n_pes());
}

void refuse_pe(const char* call, int pe) {
  refuse_pe(running(call), call, pe);
}

void refuse_address(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes, int pe) {
  const SymmetricGlobals& globals = runtime.job().globals;
  if (const auto found = runtime.job().registered->find(mine)) {
    refuse_registered(runtime, call, *found, bytes, pe);
  }
  std::string text = fmt::format("{} bytes at the given address are not ", bytes);
  if (globals.differs(mine, pe)) {
    text += fmt::format(
        "symmetric: PE {} runs another program, or other libraries, and so has other global variables (shmem_malloc "
        "gives "
        "memory that all PEs have)",
        pe);
  } else {
    text += "inside the symmetric heap (shmem_malloc gives memory that is)";
    text += globals.why_not().empty() ? " nor inside the global and static variables of the program"
                                      : "; global and static variables are not symmetric: " + globals.why_not();
  }
  end_job(runtime, call, text + whose(runtime, mine) + (bytes > PTRDIFF_MAX ? "; the size is a negative number" : ""));
}

std::byte* remote(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes, int pe) {
  check_pe(runtime, call, pe);
  const int number = runtime.job().nodes.number(pe);
  if (number < 0) {
    if (!runtime.job().locate_remote(mine, bytes, pe)) {
      refuse_address(runtime, call, mine, bytes, pe);
    }
    return nullptr;
  }
  const MemoryRange theirs = runtime.job().locate(mine, number);
  if (theirs.address == nullptr || bytes > theirs.room) {
    refuse_address(runtime, call, mine, bytes, pe);
  }
  if (runtime.checker() != nullptr) [[unlikely]] {
    check_symmetric(runtime, call, mine, bytes);
  }
  return theirs.address;
}

std::byte* remote_if_mapped(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes, int pe) {
  check_pe(runtime, call, pe);
  const Job& job = runtime.job();
  const int number = job.nodes.number(pe);
  const auto found = number >= 0 ? job.registered->find(mine) : std::nullopt;
  if (found && bytes <= found->room && job.registered->copied(*found, number) != nullptr) {
    return nullptr;
  }
  return remote(runtime, call, mine, bytes, pe);
}

std::string place_text(const Runtime& runtime, const void* mine) {
  const NodeMemory& memory = runtime.job().memory;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(runtime.job().me));
  std::string text = fmt::format("at {}", mine);
  if (const auto found = runtime.job().registered->find(mine)) {
    return text + fmt::format(", offset {} of registered memory", found->offset);
  }
  return offset < memory.heap_size() ? text + fmt::format(", offset {} of the symmetric heap", offset) : text;
}

void refuse_alignment(const Runtime& runtime, const char* call, const void* mine, std::size_t size) {
  end_job(runtime, call, "the given address is not aligned to the size of what is there, {} bytes ({})", size,
          place_text(runtime, mine));
}

void refuse_count(const Target& target, std::size_t count) {
  end_job(target.runtime, target.call, "{} elements cannot be addressed", count);
}

void wake_sleeper(int number) {
  wake_parked(Runtime::current()->job(), number);
}

Team& valid_team(Runtime& runtime, const char* call, shmem_team_t team) {
  Team* found = find_team(runtime, team);
  if (found == nullptr) {
    end_job(runtime, call, not_a_team(team));
  }
  return *found;
}

}  // namespace shmem::api

extern "C" {

const char* shmemx_error_text() noexcept {
  return shmem::kept_error_text();
}

int shmemx_take_error() noexcept {
  return -std::exchange(shmem::api::recorded_code(), 0);
}

void shmemx_set_errors_return(int on) noexcept {
  shmem::set_errors_return(on != 0);
}

int shmemx_set_survive(int on) noexcept try {
  if (shmem::Runtime::current() != nullptr) {
    return shmem::api::report({std::errc::connection_already_in_progress,
                               "shmem: shmemx_set_survive: the library runs already; call it before shmem_init"});
  }
  shmem::set_wants_to_survive(on != 0);
  if (on != 0) {
    shmem::set_errors_return(true);
  }
  return 0;
}
SHMEM_CATCH(int)
}
