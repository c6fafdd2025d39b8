// SPDX-License-Identifier: Apache-2.0
// What calls of the backend return to torch.
#pragma once

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <string>
#include <vector>

#include "python/shmem_torch/call_queue.hpp"
#include "python/shmem_torch/group_calls.hpp"

namespace shmem_torch {

/// A group and the calls on it that are not over. Works keep it, so that they can be waited for after the process group
/// has been dropped.
struct Engine {
  template <typename... Arguments>
  explicit Engine(const Arguments&... arguments) : group(arguments...) {}
  GroupHandle group;
  CallQueue queue;  // last: it ends first
};

struct WorkInfo {
  int rank;
  c10d::OpType type;
  const char* title;  // "shmem:all_reduce", as the profiler shows it
};

/// A collective call in the queue of its group.
class QueuedWork final : public c10d::Work {
 public:
  QueuedWork(const WorkInfo& info, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> results,
             std::shared_ptr<Engine> engine)
      : Work(info.rank, info.type, info.title, inputs),
        engine_(std::move(engine)),
        title_(info.title),
        results_(std::move(results)) {}

  /// `make` returns "" or why it failed.
  static c10::intrusive_ptr<QueuedWork> give(const WorkInfo& info, const std::vector<at::Tensor>& inputs,
                                             std::vector<at::Tensor> results, const std::shared_ptr<Engine>& engine,
                                             std::function<std::string()> make);

  bool isCompleted() override { return engine_->queue.is_over(call_); }
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void end(const std::string& error);
  void settle();

  const std::shared_ptr<Engine> engine_;
  const char* title_;
  CallPointer call_;
  const std::vector<at::Tensor> results_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by mutex_; once somebody has asked for it
};

/// A message to or from another member.
class MessageWork final : public c10d::Work {
 public:
  struct Request {
    bool sends;
    int peer;  // -1: any
    int tag;
    std::chrono::milliseconds timeout;
  };
  /// Throws if it cannot be begun.
  MessageWork(const WorkInfo& info, const at::Tensor& tensor, const Request& request, std::shared_ptr<Engine> engine);
  ~MessageWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  struct State;
  void settle(int error);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<State> state_;  // the message's, too
};

#if TORCH_VERSION_MAJOR >= 2
/// Several calls as one. It is over when all of them are.
class JoinedWork final : public c10d::Work {
 public:
  JoinedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
      : Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  /// Throws the failure of the first call that has failed.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};
#endif

}  // namespace shmem_torch
