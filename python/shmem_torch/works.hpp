// SPDX-License-Identifier: Apache-2.0
// What calls of the backend return to torch, but for collective calls (call_queue.hpp).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "python/shmem_torch/call_queue.hpp"

namespace shmem_torch {

WorkPointer work_that_is_over();

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
