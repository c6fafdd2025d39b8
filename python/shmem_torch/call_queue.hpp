// SPDX-License-Identifier: Apache-2.0
// The collective calls of one group, in order: made by the thread that waits for one, or by a thread of the queue if
// no thread waits.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace shmem_torch {

/// One call. The queue keeps it until it is over.
class QueuedCall {
 public:
  QueuedCall() = default;
  QueuedCall(const QueuedCall&) = delete;
  QueuedCall& operator=(const QueuedCall&) = delete;

 protected:
  ~QueuedCall() = default;

 private:
  friend class CallQueue;
  /// Runs once. Returns "" or why it failed, or throws that.
  virtual std::string make() = 0;
  /// After make(), before waiters return.
  virtual void end(const std::string& error) = 0;
  /// The queue needs the call from now on, and no more. With the second the call may go.
  virtual void keep() = 0;
  virtual void let_go() = 0;

  // Guarded by the queue's mutex.
  QueuedCall* next_ = nullptr;
  bool is_over_ = false;
  bool has_ended_ = false;  // no: end() is left to the waiter, because the interpreter exits
  std::string error_;       // once it is over
};

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
  void give(QueuedCall& call);
  /// The thread makes the calls that no other thread waits for.
  void flush();
  /// Makes calls until this one is over.
  void wait(QueuedCall& call);
  /// False: not within `limit`. The caller makes no call.
  bool wait_for(QueuedCall& call, std::chrono::milliseconds limit);
  [[nodiscard]] bool is_over(const QueuedCall& call);
  void require_process() const;

 private:
  struct State;
  static void end(QueuedCall& call, const std::string& error);
  const std::shared_ptr<State> state_;  // the thread's, too
  const int owner_;
};

}  // namespace shmem_torch
