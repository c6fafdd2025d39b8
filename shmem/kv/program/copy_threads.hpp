// SPDX-License-Identifier: Apache-2.0
// What the shuffle's speed is compared with: the C library's memcpy on as many threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kv_program {

/// So many threads, one of them the caller of run(), which do a piece of work each. Used by one thread.
class CopyThreads {
 public:
  using Work = std::function<void(int thread, int threads)>;

  explicit CopyThreads(int threads);
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;
  ~CopyThreads();

  /// Returns when all have done their part. The work does not throw.
  void run(const Work& work);

 private:
  void serve(int thread);

  int count_;
  std::mutex mutex_;
  std::condition_variable started_, ended_;
  const Work* work_ = nullptr;  // nullptr with a new run: end
  unsigned runs_ = 0;
  int working_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace kv_program
