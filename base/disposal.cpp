// SPDX-License-Identifier: Apache-2.0
#include "base/disposal.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <new>

namespace base {
namespace {

/// Between two looks for calls that still use one.
constexpr std::chrono::milliseconds kLookAgain{20};
/// For the destructor to wait.
constexpr std::chrono::milliseconds kDisposalMoment{200};
/// Among ordinary processes far fewer wait at a time: each is over at once.
constexpr std::size_t kManyToDispose = 64;

using DisposalList = std::list<std::shared_ptr<const void>>;

}  // namespace

struct Disposal::Queue {
  std::mutex mutex;  // for the rest
  std::condition_variable changed;
  DisposalList used;
  bool stop = false;     // end when nothing is left
  bool runs = false;     // there is a thread
  std::size_t size = 0;  // of `used`, and what the thread ends

  void run();
};

Disposal::Disposal() : queue_(std::make_shared<Queue>()) {}

Disposal::~Disposal() {
  std::unique_lock lock(queue_->mutex);
  queue_->stop = true;
  queue_->changed.notify_all();
  const bool ended = queue_->changed.wait_for(lock, kDisposalMoment, [this] { return !queue_->runs; });
  lock.unlock();
  if (!ended) {
    thread_.abandon();
  }
  thread_.join();
}

void Disposal::add(std::shared_ptr<const void> used) noexcept try {
  DisposalList one{std::move(used)};
  const std::lock_guard lock(queue_->mutex);
  queue_->used.splice(queue_->used.end(), one);
  ++queue_->size;
  queue_->changed.notify_all();
  if (!queue_->runs) {
    if (auto thread = HelperThread::start([queue = queue_] { queue->run(); })) {
      thread_ = *std::move(thread);
      queue_->runs = true;
    }  // else the destructor ends them, or the thread that a later one starts
  }
} catch (const std::bad_alloc&) {
  // It ends here, or with the last call that uses it.
}

bool Disposal::is_behind() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->size >= kManyToDispose;
}

/// Allocates nothing.
void Disposal::Queue::run() {
  std::unique_lock lock(mutex);
  while (!stop || !used.empty()) {
    const auto unused = std::find_if(used.begin(), used.end(), [](const auto& one) { return one.use_count() == 1; });
    if (unused != used.end()) {
      DisposalList ended;
      ended.splice(ended.end(), used, unused);
      lock.unlock();
      ended.clear();
      lock.lock();
      --size;
    } else if (used.empty()) {
      changed.wait(lock);
    } else {
      changed.wait_for(lock, kLookAgain);
    }
  }
  runs = false;
  changed.notify_all();
}

}  // namespace base
