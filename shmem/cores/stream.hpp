// SPDX-License-Identifier: Apache-2.0
// A stream: work items that run in order while the caller continues.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>

#include "base/helper_thread.hpp"

namespace shmem {

/// Owns a thread, which sleeps while there is nothing to do and receives no signals. Any thread may add work and wait
/// for it. The destructor waits for all work.
class Stream {
 public:
  using Work = std::function<std::errc()>;

  /// Throws std::system_error if no thread can be created.
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// `work` begins when all earlier work is done, whatever its result was.
  void give(Work work);
  /// Waits for all work added so far. Returns the first error since the last call.
  std::errc synchronize();
  /// The same, but leaves the error to synchronize().
  void wait();
  /// The calling thread is a stream's thread.
  static bool is_own_thread();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable idle_;
  std::deque<Work> queue_;  // the front is running
  std::errc error_{};
  bool over_ = false;
  base::HelperThread thread_;  // last: it uses the others
};

}  // namespace shmem
