// SPDX-License-Identifier: Apache-2.0
// Threads of the library that the application should not notice.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "shmem/result.hpp"

namespace shmem {

/// Owns a thread that no signal is delivered to. A process forked from the one that started it has no such thread, and
/// only forgets it.
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
    if (error != 0) return fail_errno(error, "shmem: cannot start a thread");
    return thread;
  }

  HelperThread(HelperThread&&) = default;
  HelperThread& operator=(HelperThread&&) = default;
  ~HelperThread() { join(); }

  /// There is a thread, and it runs in this process.
  [[nodiscard]] bool runs_here() const { return thread_.joinable() && ::getpid() == owner_; }
  /// Lets it run by itself, with what it owns.
  void abandon() {
    if (thread_.joinable()) thread_.detach();
  }
  void join() {
    if (!thread_.joinable()) return;
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

}  // namespace shmem
