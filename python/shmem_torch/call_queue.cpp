// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/call_queue.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

namespace shmem_torch {
namespace {

constexpr std::chrono::microseconds kNap{500};
constexpr int kNaps = 100;  // before the thread sleeps until it is woken

}  // namespace

CallQueue::~CallQueue() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  given_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void CallQueue::give(CallPointer call) {
  const std::scoped_lock lock(mutex_);
  calls_.push_back(std::move(call));
  if (!thread_.joinable()) {
    // Signals are for the program's threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    naps_ = true;
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } else if (!naps_) {
    given_.notify_one();
  }
}

void CallQueue::hurry() {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(hurried_, true)) {
    given_.notify_one();
  }
}

void CallQueue::make_first(std::unique_lock<std::mutex>& lock) {
  const CallPointer call = std::move(calls_.front());
  calls_.pop_front();
  making_ = true;
  lock.unlock();
  const std::string error = call->make();
  call->make = nullptr;
  if (call->ended) {
    call->ended(error);
    call->ended = nullptr;
  }
  lock.lock();
  making_ = false;
  call->over = true;
  ended_.notify_all();
}

void CallQueue::wait(const CallPointer& call) {
  std::unique_lock lock(mutex_);
  while (!call->over) {
    if (can_make()) {
      make_first(lock);
    } else {
      ended_.wait(lock);
    }
  }
}

bool CallQueue::wait_for(const CallPointer& call, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!std::exchange(hurried_, true)) {
    given_.notify_one();
  }
  return ended_.wait_for(lock, limit, [&call] { return call->over; });
}

bool CallQueue::is_over(const CallPointer& call) {
  const std::scoped_lock lock(mutex_);
  if (!call->over && !std::exchange(hurried_, true)) {
    given_.notify_one();
  }
  return call->over;
}

void CallQueue::serve() {
  ::pthread_setname_np(::pthread_self(), "shmem-torch");
  std::unique_lock lock(mutex_);
  for (;;) {
    naps_ = true;
    for (int nap = 0; nap < kNaps && !stopping_ && !hurried_; ++nap) {
      const bool idle = calls_.empty();
      given_.wait_for(lock, kNap);
      // What was there before the nap, nobody waits for.
      if (can_make() && !idle) {
        break;
      }
      nap = idle ? nap : 0;
    }
    naps_ = false;
    while (!can_make() && !stopping_) {
      hurried_ = false;
      if (making_) {
        ended_.wait(lock);
      } else {
        given_.wait(lock);
      }
    }
    while (can_make()) {
      make_first(lock);
    }
    hurried_ = false;
    if (stopping_ && calls_.empty() && !making_) {
      return;
    }
  }
}

}  // namespace shmem_torch
