// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/peer.hpp"
#include "shmem/log.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace shmem::api {
namespace {

std::string& error_text() {
  static thread_local std::string text;
  return text;
}

/// What more is to be said of an address that is not symmetric.
std::string whose(const Context& context, const void* address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%p", address);
  const NodeMemory& memory = context.job().memory;
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory.heap(0));
  const std::size_t number = offset / memory.heap_size();
  const Job& job = context.job();
  if (number < static_cast<std::size_t>(job.size) && number != static_cast<std::size_t>(job.me)) {
    return std::string("; ") + text.data() + " is what shmem_ptr gives for PE " +
           std::to_string(job.nodes.world(static_cast<int>(number))) +
           ": give the address that this PE has for the object";
  }
  return std::string("; the address is ") + text.data();
}

}  // namespace

void refuse_before_start(const char* call) {
  log(LogLevel::kFatal, "shmem: %s was called before shmem_init or after shmem_finalize", call);
  std::exit(EXIT_FAILURE);  // NOLINT(concurrency-mt-unsafe)
}

int report(const Error& error) {
  error_text() = error.text;
  return -static_cast<int>(error.code);
}

int report_loudly(const Error& error) {
  log(LogLevel::kError, "%s", error.text.c_str());
  return report(error);
}

void end_job(const Context& context, const char* call, const std::string& problem) {
  context.end_job(EXIT_FAILURE, "shmem: PE " + std::to_string(context.my_pe()) + ": " + call + ": " + problem);
}

void refuse_pe(const Context& context, const char* call, int pe) {
  end_job(context, call, "there is no PE " + std::to_string(pe) + " in this job of " + std::to_string(context.n_pes()));
}

void refuse_pe(const char* call, int pe) {
  refuse_pe(running(call), call, pe);
}

void refuse_address(const Context& context, const char* call, const void* mine, std::size_t bytes, int pe) {
  const SymmetricGlobals& globals = context.job().globals;
  std::string text = std::to_string(bytes) + " bytes at the given address are not ";
  if (globals.differs(mine, pe)) {
    text += "symmetric: PE " + std::to_string(pe) +
            " runs another program, or other libraries, and so has other global variables (shmem_malloc gives memory "
            "that all PEs have)";
  } else {
    text += "inside the symmetric heap (shmem_malloc gives memory that is)";
    text += globals.why_not().empty() ? " nor inside the global and static variables of the program"
                                      : "; global and static variables are not symmetric: " + globals.why_not();
  }
  end_job(context, call, text + whose(context, mine) + (bytes > PTRDIFF_MAX ? "; the size is a negative number" : ""));
}

std::byte* remote(const Context& context, const char* call, const void* mine, std::size_t bytes, int pe) {
  check_pe(context, call, pe);
  const int number = context.job().nodes.number(pe);
  if (number < 0) {
    if (!context.job().locate_far(mine, bytes, pe)) {
      refuse_address(context, call, mine, bytes, pe);
    }
    return nullptr;
  }
  const Place theirs = context.job().locate(mine, number);
  if (theirs.address == nullptr || bytes > theirs.room) {
    refuse_address(context, call, mine, bytes, pe);
  }
  if (context.checker() != nullptr) [[unlikely]] {
    check_symmetric(context, call, mine, bytes);
  }
  return theirs.address;
}

void refuse_alignment(const Context& context, const char* call, std::size_t size) {
  end_job(context, call,
          "the given address is not aligned to the size of what is there, " + std::to_string(size) + " bytes");
}

void refuse_count(const Target& target, std::size_t count) {
  end_job(target.context, target.call, std::to_string(count) + " elements cannot be addressed");
}

void wake_sleeper(int number) {
  wake_parked(Context::current()->job(), number);
}

Team& valid_team(Context& context, const char* call, shmem_team_t team) {
  Team* found = context.teams().find(team);
  if (found == nullptr) {
    end_job(context, call, std::to_string(team) + " is not a team of this PE");
  }
  return *found;
}

}  // namespace shmem::api

extern "C" const char* shmemx_error_text() noexcept {
  return shmem::api::error_text().c_str();
}
