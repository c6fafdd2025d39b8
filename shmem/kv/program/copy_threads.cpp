// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/copy_threads.hpp"

namespace kv_program {

CopyThreads::CopyThreads(int threads) : count_(threads) {
  for (int thread = 1; thread < threads; ++thread) {
    threads_.emplace_back([this, thread] { serve(thread); });
  }
}

CopyThreads::~CopyThreads() {
  {
    const std::lock_guard lock{mutex_};
    work_ = nullptr;
    ++runs_;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void CopyThreads::run(const Work& work) {
  {
    const std::lock_guard lock{mutex_};
    work_ = &work;
    working_ = count_ - 1;
    ++runs_;
  }
  started_.notify_all();
  work(0, count_);
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [this] { return working_ == 0; });
}

void CopyThreads::serve(int thread) {
  for (unsigned run = 1;; ++run) {
    std::unique_lock lock{mutex_};
    started_.wait(lock, [&] { return runs_ >= run; });
    if (work_ == nullptr) {
      return;
    }
    lock.unlock();
    (*work_)(thread, count_);
    lock.lock();
    if (--working_ == 0) {
      ended_.notify_one();
    }
  }
}

}  // namespace kv_program
