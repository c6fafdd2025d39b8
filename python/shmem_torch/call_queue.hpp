// SPDX-License-Identifier: Apache-2.0
// The collective calls of one group, in order: made by the thread that waits for one, or by a thread of the queue if
// no thread waits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace shmem_torch {

/// One call. `make` runs once, and returns "" or why it failed, or throws that. `ended` runs after it, before waiters
/// return.
struct QueuedCall {
  std::function<std::string()> make;
  std::function<void(const std::string& error)> ended;

 private:
  friend class CallQueue;
  bool over = false;  // guarded by the queue's mutex
  std::string error;  // once over, if `ended` is left to the waiter, because the interpreter exits
};
using CallPointer = std::shared_ptr<QueuedCall>;

/// Thread-safe. A caller that waits at once, as most do, makes the call itself: that takes no other thread, and no
/// wake-up. For that the queue's thread naps for a while after each call, instead of being woken by the next one.
class CallQueue {
 public:
  CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  /// Makes the calls that are left. May be called by the queue's thread, which drops the last call.
  ~CallQueue();

  // All throw std::runtime_error in a process forked from the one that has made the queue: it has no such thread,
  // perhaps a locked mutex, and its calls on the group would count as those of its parent.

  /// Makes the call itself if there is no thread, and none can be started.
  void give(const CallPointer& call);
  /// The call is not waited for soon: the thread makes it.
  void hurry();
  void wait(const CallPointer& call);
  /// False: not within `limit`. The caller makes no call.
  bool wait_for(const CallPointer& call, std::chrono::milliseconds limit);
  [[nodiscard]] bool is_over(const CallPointer& call);
  void require_process() const;

 private:
  struct State;
  static void tell_end(QueuedCall& call);
  const std::shared_ptr<State> state_;  // the thread's, too
  const int owner_;
};

}  // namespace shmem_torch
