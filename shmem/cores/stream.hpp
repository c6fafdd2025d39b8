// SPDX-License-Identifier: Apache-2.0
// A stream: work that is done in the order it was given, while the giver goes on.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace shmem {

/// Owns a thread, which sleeps while there is nothing to do. Any thread may give work and wait for it. The end of the
/// object comes when all work is done.
class Stream {
 public:
  using Work = std::function<std::errc()>;

  /// Throws std::system_error if there can be no more threads.
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// `work` begins when all that was given before is done, and after that it does not matter what came of that.
  void give(Work work);
  /// Waits until all that was given so far is done. The first error since the last call.
  std::errc synchronize();
  /// The same, and leaves the error to synchronize().
  void wait();
  /// The calling thread is that of a stream.
  static bool is_own_thread();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable idle_;
  std::deque<Work> queue_;  // the front is being done
  std::errc error_{};
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace shmem
