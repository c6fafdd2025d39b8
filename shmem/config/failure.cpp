// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/failure.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "shmem/config/log.hpp"

namespace shmem {
namespace {

// Relaxed: a switch that the program sets before it calls anything else.
constinit std::atomic<bool> wanted_by_program{false};
constinit std::atomic<bool> survival_wanted{false};

/// The program's exit handlers may take their time, or wait for a thread that has failed.
constexpr std::chrono::seconds kExitLimit{10};
constinit std::atomic<EndTeller> end_teller{nullptr};  // relaxed: set when the library is loaded
constinit std::atomic<int> exit_status{0};
constinit std::atomic<pid_t> exiting_process{0};  // not a child that an exit handler forks
constinit std::atomic<pid_t> exiting_thread{0};   // 0: none

bool tell_end(const std::string& text) {
  const EndTeller teller = end_teller.load(std::memory_order_relaxed);
  return !has_log_handler() && teller != nullptr && teller(text);
}

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

void note_exit(int status) {
  exit_status.store(status, std::memory_order_relaxed);
  exiting_process.store(::getpid(), std::memory_order_relaxed);
  exiting_thread.store(::gettid(), std::memory_order_release);  // pairs with wait_if_exiting()
}

void wait_if_exiting() {
  const pid_t thread = exiting_thread.load(std::memory_order_acquire);
  if (thread == 0 || thread == ::gettid() || exiting_process.load(std::memory_order_relaxed) != ::getpid()) {
    return;
  }
  std::this_thread::sleep_for(kExitLimit);
  ::_exit(exit_status.load(std::memory_order_relaxed));
}

void set_end_teller(EndTeller teller) {
  end_teller.store(teller, std::memory_order_relaxed);
}

void log_last_words(const std::string& text) {
  if (!tell_end(text)) {
    log(LogLevel::kFatal, "%s", text.c_str());
  }
}

void log_failed_call(const std::string& text) {
  if (text.find(kJobWasEnded) == std::string::npos || !tell_end(text)) {
    log(LogLevel::kError, "%s", text.c_str());
  }
}

void end_process_for(const Error& error, int status, ProcessEnd way) {
  if (errors_return()) {
    throw CallFailure{error};
  }
  wait_if_exiting();
  if (!error.text.empty() && status != 0) {
    log_last_words(error.text);
  }
  if (way == ProcessEnd::kWithExitHandlers) {
    std::exit(status);  // NOLINT(concurrency-mt-unsafe)
  }
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace shmem
