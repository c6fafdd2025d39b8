// SPDX-License-Identifier: Apache-2.0
// What calls of the backend return to torch.
#pragma once

#include <ATen/record_function.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/shmem_torch/call_queue.hpp"
#include "python/shmem_torch/group_calls.hpp"
#include "python/shmem_torch/tensors.hpp"
#include "python/shmem_torch/versions.hpp"
#include "python/shmem_torch/work_tracker.hpp"

namespace shmem_torch {

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

/// What is in the queue of a group.
class QueuedWork : public WorkBase, public QueuedCall {
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

 private:
  std::string make() final;
  void end(const std::string& error) override;
  void keep() override;
  void let_go() override;
  /// What to hand to torch, which copies it: nothing while no profiler looks.
  static const std::vector<at::Tensor>& seen_by_profilers(const std::vector<at::Tensor>& inputs) {
    static const std::vector<at::Tensor> none;
    return at::hasCallbacks() ? inputs : none;
  }
  /// "", or why it failed.
  virtual std::string call() = 0;
  /// What only call() needs.
  virtual void drop() = 0;
  void settle();

  const std::shared_ptr<Engine> engine_;
  WorkTicket ticket_;
  const char* title_;
  const Few<at::Tensor> results_;
  c10::intrusive_ptr<QueuedWork> self_;             // while the queue needs it
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by mutex_; once somebody has asked for it
};

/// A collective call.
class CollectiveWork final : public QueuedWork {
 public:
  CollectiveWork(const WorkInfo& info, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results,
                 std::shared_ptr<Engine> engine, WorkTicket ticket, TensorCall call)
      : QueuedWork(info, inputs, results, std::move(engine), std::move(ticket)), call_(std::move(call)) {}

 private:
  std::string call() override;
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
  std::string call() override { return make_(); }
  void drop() override { make_ = nullptr; }

  std::function<std::string()> make_;
};

WorkPointer work_that_is_over();

/// "", or why it failed.
std::string make(TensorCall& call, const GroupHandle& group);

/// A message to or from another member.
class MessageWork final : public WorkBase {
 public:
  struct Request {
    bool sends;
    int peer;  // -1: any
    int tag;
  };
  /// Throws if it cannot be begun.
  MessageWork(const WorkInfo& info, const at::Tensor& tensor, const Request& request, std::shared_ptr<Engine> engine,
              WorkTicket ticket);
  ~MessageWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  std::uint64_t getSequencenumber() const override;
  std::chrono::milliseconds getTimeout() const override;

 private:
  struct State;
  void settle(int error);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<State> state_;  // the message's, too
};

/// Several calls as one. It is over when all of them are.
class JoinedWork final : public WorkBase {
 public:
  JoinedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
      : WorkBase(rank, kCoalesced), works_(std::move(works)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  /// Throws the failure of the first call that has failed, when all are over.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

}  // namespace shmem_torch
