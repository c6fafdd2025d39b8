// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/stream.hpp"

#include <utility>

#include "shmem/config/failure.hpp"

namespace shmem {
namespace {

bool& own_thread() {
  static thread_local bool is_one = false;
  return is_one;
}

/// What a call of the work that cannot return an error throws, if errors return, is an error of the work.
std::errc outcome_of(Stream::Work& work) {
  try {
    return work();
  } catch (const CallFailure& failure) {
    return failure.error.code;
  }
}

}  // namespace

bool Stream::is_own_thread() {
  return own_thread();
}

Stream::Stream() {
  auto thread = base::HelperThread::start([this] { run(); });
  if (!thread) {
    throw std::system_error(std::make_error_code(thread.error().code));
  }
  thread_ = *std::move(thread);
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  given_.notify_one();
  thread_.join();
}

void Stream::give(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  given_.notify_one();
}

std::errc Stream::synchronize() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty(); });
  return std::exchange(error_, std::errc{});
}

void Stream::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty(); });
}

void Stream::run() {
  own_thread() = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [this] { return over_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    Work& work = queue_.front();  // stays in place: other threads only append to the queue
    lock.unlock();
    const std::errc error = outcome_of(work);
    lock.lock();
    if (error_ == std::errc{}) {
      error_ = error;
    }
    queue_.pop_front();
    if (queue_.empty()) {
      idle_.notify_all();
    }
  }
}

}  // namespace shmem
