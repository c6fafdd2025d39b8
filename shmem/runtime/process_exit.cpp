// SPDX-License-Identifier: Apache-2.0
// How the process of a PE ends: by exit(), by shmem_global_exit, or because of a failure. Other threads may be in the
// library then.
#include <fmt/format.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/folder.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/bootstrap/end_reports.hpp"
#include "shmem/config/failure.hpp"
#include "shmem/config/log.hpp"
#include "shmem/memory/ordering.hpp"
#include "shmem/runtime/backtrace.hpp"
#include "shmem/runtime/runtime.hpp"

namespace shmem {
namespace {

/// Unknown counts as several.
bool has_other_threads() {
  return base::names_in("/proc/self/task").size() != 1;
}

std::string wait_text(const std::string& text) {
  return fmt::format("{}\n{}", waiter_in(text), text);
}

/// A call that fails because the job was ended is no cause.
bool report_failure(const std::string& text) {
  const bool is_told = text.find(kJobWasEnded) != std::string::npos;
  return report_end(is_told ? EndKind::kTold : EndKind::kFailed, is_told ? wait_text(text) : text);
}

/// The status of the process. It is set by the library's exit handler.
int exit_status = 0;

/// Comes after all exit handlers, and before the destructors of the libraries that this one uses, which threads that
/// are still in it must not see. A handler of on_exit() that is registered when this library is loaded comes after
/// them.
[[gnu::destructor]] void end_before_libraries() {
  if (Runtime::current() != nullptr && Runtime::is_exiting() && has_other_threads()) {
    std::fflush(nullptr);
    ::_exit(exit_status);
  }
}

}  // namespace

void Runtime::register_handlers() {
  ::pthread_atfork(nullptr, nullptr, forget_in_child);
  set_end_teller(report_failure);
}

void Runtime::finish_at_exit() {
  // Once a process, however often the library starts.
  static const int registered =
      ::on_exit([](int status, void* /*argument*/) { Runtime::end_at_exit(status); }, nullptr);
  static_cast<void>(registered);
}

// Other threads may be in the library, and go on until the process ends. So nothing is destroyed.
void Runtime::end_at_exit(int status) {
  owned_.store(nullptr, std::memory_order_relaxed);
  // A child process that was not made by fork() has a copy of the runtime, but is not a PE.
  if (current_ == nullptr || !current_->is_own_process()) {
    return;
  }
  note_exit(status);
  exit_status = status;
  if (!is_exiting_.exchange(true, std::memory_order_relaxed)) {
    current_->leave_by_exit(status & 0xff);  // what other processes see of it
  }
  current_->network_.stop_progress();  // exit handlers of the network's libraries run, too
  if (current_->trace_) {
    current_->trace_->flush();
  }
}

void Runtime::leave_by_exit(int status) {
  if (status != 0) {
    // Before the connections break: the others would report that, and the job end with another status.
    if (job_.on_several_nodes() && !survives()) {
      job_.bootstrap->announce_exit(
          status, fmt::format("PE {} (pid {}) exited with status {}", job_.world_me(), ::getpid(), status));
    }
    return;
  }
  // Programs written before OpenSHMEM 1.2 rely on this: returning from main ends the library. But work of this PE, from
  // which exit() is called, never ends, and other PEs may wait for it.
  if (Stream::is_own_thread() || CoreGroup::is_core()) {
    return;
  }
  debug("exits without shmem_finalize");
  quiet();
  if (auto ok = leave_job(); !ok && !errors_return()) {
    end_process_for(ok.error(), EXIT_FAILURE);
  }
  has_left_.store(true, std::memory_order_relaxed);
  job_.bootstrap->serve_others();
}

void Runtime::end_job_of(const std::string& call, const std::string& problem) const {
  if (problem.empty() && !errors_return()) {
    end_process_for({}, EXIT_FAILURE);  // the job has been ended, with a message
  }
  const std::string text = problem.empty() ? std::string(kJobWasEnded) : problem;
  end_job({problem.empty() ? std::errc::operation_canceled : std::errc::invalid_argument,
           fmt::format("shmem: PE {}: {}: {}", job_.world_me(), call, text)});
}

/// Status 0 is a program's usual end, of which only SHMEM_INFO tells.
void Runtime::log_end(int status, const std::string& text) const {
  if (status != 0 || job_.options.info) {
    status == 0 ? log(LogLevel::kInfo, "%s", text.c_str()) : log_last_words(text);
  }
}

void Runtime::log_wait(int status, const std::string& text, EndKind kind) const {
  if (status != 0 && (has_log_handler() || !report_end(kind, wait_text(text)))) {
    log_end(status, text);
  }
}

void Runtime::exit_job(int status, const std::string& what) {
  wait_if_exiting();
  note_exit(status);
  log_end(status, what);
  if (trace_) {
    trace_->flush();
  }
  // The other PEs first: exit handlers are the program's, and may take their time.
  std::fflush(nullptr);
  is_exiting_.store(true, std::memory_order_relaxed);
  const int agreed = job_.bootstrap->abort(status, what);
  std::exit(agreed);  // NOLINT(concurrency-mt-unsafe)
}

void Runtime::log_failed_call(const Error& error) const {
  const bool is_loss = error.code == std::errc::owner_dead || error.code == std::errc::host_unreachable;
  shmem::log_failed_call(is_loss && !survives() ? error.text + network_.reason_of_loss(/*by_leader=*/true)
                                                : error.text);
}

void Runtime::end_job(const Error& error) const {
  wait_if_exiting();
  const bool has_reason = error.text.find(kJobWasEnded) != std::string::npos;
  const std::string text = has_reason ? error.text : error.text + network_.reason_of_loss();
  if (errors_return()) {
    end_process_for({error.code, text}, EXIT_FAILURE);
  }
  // If another PE has ended the job, its status counts; 0 is no failure.
  const int agreed = has_reason ? job_.bootstrap->abort(EXIT_FAILURE, text) : EXIT_FAILURE;
  // The loss of another node, or of the leader of this one, is a consequence, too.
  const bool is_told = text.find(kJobWasEnded) != std::string::npos;
  if (is_told) {
    log_wait(agreed, text, EndKind::kTold);
  } else if (error.code == std::errc::owner_dead || error.code == std::errc::host_unreachable) {
    log_wait(agreed, text, EndKind::kNoticed);
  } else {
    note_calls();
    log_end(agreed, text);
  }
  if (trace_) {
    trace_->flush();
  }
  std::fflush(nullptr);
  end_process_for({}, has_reason ? agreed : job_.bootstrap->abort(EXIT_FAILURE, text));
}

}  // namespace shmem
