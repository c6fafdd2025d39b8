// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/failure.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "shmem/config/log.hpp"

namespace shmem {
namespace {

// Relaxed: a switch that the program sets before it calls anything else.
constinit std::atomic<bool> wanted_by_program{false};
constinit std::atomic<bool> survival_wanted{false};

}  // namespace

bool errors_return() {
  return wanted_by_program.load(std::memory_order_relaxed);
}

void set_errors_return(bool wanted) {
  wanted_by_program.store(wanted, std::memory_order_relaxed);
}

bool wants_to_survive() {
  return survival_wanted.load(std::memory_order_relaxed);
}

void set_wants_to_survive(bool wanted) {
  survival_wanted.store(wanted, std::memory_order_relaxed);
}

void end_process_for(const Error& error, int status, ProcessEnd way) {
  if (errors_return()) {
    throw CallFailure{error};
  }
  if (!error.text.empty() && status != 0) {
    log(LogLevel::kFatal, "%s", error.text.c_str());
  }
  if (way == ProcessEnd::kWithExitHandlers) {
    std::exit(status);  // NOLINT(concurrency-mt-unsafe)
  }
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace shmem
