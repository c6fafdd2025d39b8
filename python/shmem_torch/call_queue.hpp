// SPDX-License-Identifier: Apache-2.0
// The collective calls of one group, in order: made by the thread that waits for one, or by a thread of the queue if
// no thread waits. Each is a work, which torch gets.
#pragma once

#include <ATen/record_function.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/shmem_torch/group_calls.hpp"
#include "python/shmem_torch/tensors.hpp"
#include "python/shmem_torch/versions.hpp"
#include "python/shmem_torch/work_tracker.hpp"

namespace shmem_torch {

class QueuedWork;

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
  void give(QueuedWork& call);
  /// The thread makes the calls that no other thread waits for.
  void flush();
  /// Makes calls until this one is over.
  void wait(QueuedWork& call);
  /// False: not within `limit`. The caller makes no call.
  bool wait_for(QueuedWork& call, std::chrono::milliseconds limit);
  [[nodiscard]] bool is_over(const QueuedWork& call);
  void require_process() const;

 private:
  struct State;
  static void end(QueuedWork& call, const std::string& error);
  const std::shared_ptr<State> state_;  // the thread's, too
  const int owner_;
};

/// A group and the calls on it that are not over. Works keep it, so that they can be waited for after the process group
/// has been dropped.
struct Engine {
  template <typename... Arguments>
  explicit Engine(std::shared_ptr<WorkTracker> works, const Arguments&... arguments)
      : tracker(std::move(works)), group(arguments...) {}
  /// After a call: tells the tracker if the group has failed.
  void look_for_failure() const {
    if (const int error = group.failure(); error != 0) {
      tracker->fail(error);
    }
  }
  const std::shared_ptr<WorkTracker> tracker;
  const GroupHandle group;
  CallQueue queue;  // last: it ends first
};

struct WorkInfo {
  int rank;
  c10d::OpType type;
  const char* title;  // "shmem:all_reduce", as the profiler shows it
};

/// One call. The queue keeps it until it is over.
class QueuedWork : public WorkBase {
 public:
  QueuedWork(const WorkInfo& info, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results,
             std::shared_ptr<Engine> engine, WorkTicket ticket)
      : WorkBase(info.rank, info.type, info.title, seen_by_profilers(inputs)),
        engine_(std::move(engine)),
        ticket_(std::move(ticket)),
        title_(info.title),
        results_(results.begin(), results.end()) {}

  bool isCompleted() override { return engine_->queue.is_over(*this); }
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  std::vector<at::Tensor> result() override { return {results_.begin(), results_.end()}; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return ticket_.number(); }
  std::chrono::milliseconds getTimeout() const override { return ticket_.timeout(); }

 protected:
  [[nodiscard]] const GroupHandle& group() const { return engine_->group; }
  /// In make(), with its outcome: the abort hooks have been called before waiters return.
  [[nodiscard]] std::string told(std::string error) const {
    if (!error.empty()) {
      engine_->look_for_failure();
    }
    return error;
  }

 private:
  friend class CallQueue;
  /// Runs once. Returns "" or why it failed.
  virtual std::string make() = 0;
  /// What only make() needs.
  virtual void drop() = 0;
  /// After make(), before waiters return.
  void end(const std::string& error);
  /// What to hand to torch, which copies it: nothing while no profiler looks.
  static const std::vector<at::Tensor>& seen_by_profilers(const std::vector<at::Tensor>& inputs) {
    static const std::vector<at::Tensor> none;
    return at::hasCallbacks() ? inputs : none;
  }
  void settle();

  const std::shared_ptr<Engine> engine_;
  WorkTicket ticket_;
  const char* title_;
  const Few<at::Tensor> results_;
  c10::intrusive_ptr<QueuedWork> self_;             // while the queue needs it
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by mutex_; made by getFuture()
  // Guarded by the queue's mutex.
  QueuedWork* next_ = nullptr;
  bool is_over_ = false;
  bool has_ended_ = false;  // no: end() is left to the waiter, because the interpreter exits
  std::string error_;       // once it is over
};

/// A collective call.
class CollectiveWork final : public QueuedWork {
 public:
  CollectiveWork(const WorkInfo& info, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results,
                 std::shared_ptr<Engine> engine, WorkTicket ticket, TensorCall call)
      : QueuedWork(info, inputs, results, std::move(engine), std::move(ticket)), call_(std::move(call)) {}

 private:
  std::string make() override;
  void drop() override { call_.reset(); }

  std::optional<TensorCall> call_;
};

/// Several collective calls, or other ones, in their turn.
class FunctionWork final : public QueuedWork {
 public:
  /// `make` returns "" or why it failed.
  FunctionWork(const WorkInfo& info, const std::vector<at::Tensor>& tensors, std::shared_ptr<Engine> engine,
               WorkTicket ticket, std::function<std::string()> make)
      : QueuedWork(info, tensors, tensors, std::move(engine), std::move(ticket)), make_(std::move(make)) {}

 private:
  std::string make() override;
  void drop() override { make_ = nullptr; }

  std::function<std::string()> make_;
};

// For works of all kinds.
std::exception_ptr exception_of(const std::string& error);
/// `awaited`: what it waits for, if that is known.
[[noreturn]] void throw_timeout(const char* title, std::chrono::milliseconds timeout, const std::string& awaited);
/// To `future`, what has come of a call.
void complete(c10::ivalue::Future& future, std::vector<at::Tensor> results, const std::exception_ptr& failure);
c10::intrusive_ptr<c10::ivalue::Future> future_of_tensors();

}  // namespace shmem_torch
