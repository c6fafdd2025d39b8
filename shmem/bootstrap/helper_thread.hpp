// SPDX-License-Identifier: Apache-2.0
// Threads that the application should not notice, and calls of other libraries that may never return.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "shmem/result.hpp"

namespace shmem {

/// Owns a thread that receives no signals. A process forked from the one that started the thread does not have it, and
/// does not join it.
class HelperThread {
 public:
  HelperThread() = default;
  template <typename Body>
  static Result<HelperThread> start(Body body) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    HelperThread thread;
    int error = 0;
    try {
      thread.thread_ = std::thread(std::move(body));
    } catch (const std::system_error& failure) {
      error = failure.code().value();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) {
      return fail_errno(error, "shmem: cannot start a thread");
    }
    return thread;
  }

  HelperThread(HelperThread&&) = default;
  HelperThread& operator=(HelperThread&&) = default;
  ~HelperThread() { join(); }

  /// The thread exists and runs in this process.
  [[nodiscard]] bool runs_here() const { return thread_.joinable() && ::getpid() == owner_; }
  /// Detaches the thread, with what it owns.
  void abandon() {
    if (thread_.joinable()) {
      thread_.detach();
    }
  }
  void join() {
    if (!thread_.joinable()) {
      return;
    }
    if (runs_here()) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

 private:
  std::thread thread_;
  pid_t owner_ = ::getpid();
};

/// What `call` returns, or nothing if it has not returned within `limit` or before `stop()` holds. `call` runs in its
/// own thread, which is then detached, so `call` owns everything it uses.
template <typename Call, typename Stop>
Result<std::optional<std::invoke_result_t<Call>>> within(std::chrono::milliseconds limit, Call call, Stop stop) {
  constexpr std::chrono::milliseconds kLook{100};
  std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
  auto outcome = task.get_future();
  auto thread = HelperThread::start(std::move(task));
  if (!thread) {
    return thread.error();
  }
  for (auto left = limit; outcome.wait_for(std::min(left, kLook)) != std::future_status::ready; left -= kLook) {
    if (left > kLook && !stop()) {
      continue;
    }
    thread->abandon();
    return std::nullopt;
  }
  return std::optional(outcome.get());
}

template <typename Call>
Result<std::optional<std::invoke_result_t<Call>>> within(std::chrono::milliseconds limit, Call call) {
  return within(limit, std::move(call), [] { return false; });
}

}  // namespace shmem
