// SPDX-License-Identifier: Apache-2.0
// The collective calls of one group, in order: made by the thread that waits for one, or by a thread of the queue if
// no thread waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace shmem_torch {

/// One call. `make` returns "" or why it failed, and runs once. `ended` runs after it, before waiters return.
struct QueuedCall {
  std::function<std::string()> make;
  std::function<void(const std::string& error)> ended;

 private:
  friend class CallQueue;
  bool over = false;  // guarded by the queue's mutex
};
using CallPointer = std::shared_ptr<QueuedCall>;

/// Thread-safe. A caller that waits at once, as most do, makes the call itself: that takes no other thread, and no
/// wake-up. For that the queue's thread naps for a while after each call, instead of being woken by the next one.
class CallQueue {
 public:
  CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  /// Makes the calls that are left.
  ~CallQueue();

  void give(CallPointer call);
  /// The call is not waited for soon: the thread makes it.
  void hurry();
  void wait(const CallPointer& call);
  /// False: not within `limit`. The caller makes no call.
  bool wait_for(const CallPointer& call, std::chrono::milliseconds limit);
  [[nodiscard]] bool is_over(const CallPointer& call);

 private:
  void make_first(std::unique_lock<std::mutex>& lock);
  void serve();
  [[nodiscard]] bool can_make() const { return !making_ && !calls_.empty(); }

  std::mutex mutex_;
  std::condition_variable given_;  // for the thread
  std::condition_variable ended_;
  std::deque<CallPointer> calls_;
  bool making_ = false;  // a call has been taken out
  bool naps_ = false;
  bool hurried_ = false;
  bool stopping_ = false;
  std::thread thread_;  // from the first call on
};

}  // namespace shmem_torch
