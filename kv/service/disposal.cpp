// SPDX-License-Identifier: Apache-2.0
#include "kv/service/disposal.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace shmem::exchange {
namespace {

/// Between two looks for calls that still use one.
constexpr std::chrono::milliseconds kLookAgain{20};

}  // namespace

Disposal::~Disposal() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Disposal::add(std::shared_ptr<const void> used) {
  const std::lock_guard lock(mutex_);
  used_.push_back(std::move(used));
  changed_.notify_all();
  if (!thread_.runs_here()) {
    if (auto thread = HelperThread::start([this] { run(); })) {
      thread_ = *std::move(thread);
    }  // else the destructor ends them, or the thread that a later one starts
  }
}

void Disposal::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto unused = std::partition(used_.begin(), used_.end(), [](const auto& one) { return one.use_count() > 1; });
    if (unused != used_.end()) {
      std::vector<std::shared_ptr<const void>> ended(std::make_move_iterator(unused),
                                                     std::make_move_iterator(used_.end()));
      used_.erase(unused, used_.end());
      lock.unlock();
      ended.clear();
      lock.lock();
    } else if (used_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kLookAgain);
    }
  }
}

}  // namespace shmem::exchange
