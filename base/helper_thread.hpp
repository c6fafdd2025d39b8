// SPDX-License-Identifier: Apache-2.0
// Threads that the application should not notice.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.hpp"
#include "base/signals_blocked.hpp"

namespace base {

/// Owns a thread that receives no signals (SignalsBlocked). A process forked from the one that started the thread does
/// not have it, and does not join it.
class HelperThread {
 public:
  HelperThread() = default;
  template <typename Body>
  static Result<HelperThread> start(Body body) {
    HelperThread thread;
    int error = 0;
    try {
      const SignalsBlocked blocked;
      thread.thread_ = std::thread(std::move(body));
    } catch (const std::system_error& failure) {
      error = failure.code().value();
    } catch (const std::bad_alloc&) {
      error = ENOMEM;
    }
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

}  // namespace base
