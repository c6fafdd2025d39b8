// SPDX-License-Identifier: Apache-2.0
// The process group of the backend "shmem": what torch.distributed calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/shmem_torch/tensors.hpp"
#include "python/shmem_torch/works.hpp"

namespace shmem_torch {

/// The timeout to use for one that torch gives in whole milliseconds. A program that asks for less than a millisecond
/// gives 0, which the library would take for no limit at all.
inline std::chrono::milliseconds at_least_one(std::chrono::milliseconds timeout) {
  return std::max(timeout, std::chrono::milliseconds(1));
}

/// Which group it is, as torch describes it.
struct GroupPlace {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{0};
  std::string name{};
  std::vector<std::uint64_t> ranks{};  // of all members in the default group; may be empty
  bool waits_for_reconfigure = false;  // it has no members until reconfigure() is called
};

/// PyTorch's store, as groups use it.
Store store_of(const c10::intrusive_ptr<c10d::Store>& store);

class ProcessGroupShmem final : public BackendBase {
 public:
  /// Collective over the ranks. Throws if they cannot form a group.
  ProcessGroupShmem(c10::intrusive_ptr<c10d::Store> store, const GroupPlace& place);

  const std::string getBackendName() const override { return "shmem"; }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer gather_into_tensor(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) override;
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int to, int tag) override;
  WorkPointer recv(Tensors& tensors, int from, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  /// Collective: a tensor of zeros in symmetric memory, which calls on this group use where it is.
  at::Tensor empty(const std::vector<std::int64_t>& sizes, at::ScalarType type);
  [[nodiscard]] shmemx_group_statistics_t statistics() const;

  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return tracker_->collective_calls(); }

  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override;
  bool supportsCoalescing() const override { return true; }
  /// Calls from now on until endCoalescing(), which returns a work for all of them.
  void startCoalescing() override;
  WorkPointer endCoalescing() override;

  // process_group_life.cpp
  c10::intrusive_ptr<BackendOptions> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void addEphemeralTimeout(const std::chrono::milliseconds& timeout) override { tracker_->extend_timeout(timeout); }
  void registerAbortHook(std::int64_t id, AbortHook hook) override { tracker_->add_abort_hook(id, std::move(hook)); }
  void unregisterAbortHook(std::int64_t id) override { tracker_->remove_abort_hook(id); }
  void registerOnCompletionHook(CompletionHook&& hook) override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override { tracker_->measure_times(); }
  ErrorType getError() override { return tracker_->error(); }
  /// Not collective: the calls of all ranks fail, those that wait at once.
  void abort() override;
  /// Makes the calls that are left, and leaves the group.
  void shutdown() override;

  // process_group_members.cpp: groups of other members. All are collective over those.
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<TorchBackend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                         const c10::intrusive_ptr<BackendOptions>& options) override;
  c10::intrusive_ptr<TorchBackend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                         const c10::intrusive_ptr<BackendOptions>& options, const int& rank,
                                         const int& size) override;
  bool supportsShrinking() const override { return true; }
  c10::intrusive_ptr<TorchBackend> shrink(const std::vector<std::int64_t>& excluded, int flags,
                                          const c10::intrusive_ptr<BackendOptions>& options) override;
  bool supportsReconfigure() const override { return true; }
  ReconfigureHandle get_reconfigure_handle() const override;
  /// REQUIRES: no other thread uses this object meanwhile.
  WorkPointer reconfigure(const ReconfigureOptions& options) override;

  bool supportsWindow() const override { return true; }
  c10::intrusive_ptr<WindowBase> new_window(const std::optional<at::Tensor>& tensor) override;

 private:
  /// The group of libshmem. Throws if this rank is in no group now.
  [[nodiscard]] std::shared_ptr<Engine> engine() const;
  /// Null if this rank is in no group now.
  [[nodiscard]] std::shared_ptr<Engine> engine_now() const;
  std::shared_ptr<Engine> take_engine(std::string why);
  void leave(const std::string& why);
  [[nodiscard]] std::uint64_t stable_rank(int rank) const;
  void check_whole(const char* name, const at::Tensor& output, const at::Tensor& input) const;
  /// `make` is called with the timeout of the work.
  using Make = std::function<std::string(const GroupHandle& group, std::chrono::milliseconds timeout)>;
  c10::intrusive_ptr<QueuedWork> give_function(c10d::OpType type, const char* title, const Tensors& tensors,
                                               std::chrono::milliseconds timeout, Make make);
  WorkPointer give(c10d::OpType type, const char* title, const Tensors& inputs, const Tensors& results,
                   TensorCall call);
  void tell_refused(const char* name, std::chrono::milliseconds timeout);
  /// For endCoalescing().
  WorkPointer noted(WorkPointer work);
  WorkPointer allreduce_sparse_tensor(const at::Tensor& tensor, const c10d::AllreduceOptions& options);
  WorkPointer make_each(std::size_t count, const std::function<WorkPointer(std::size_t)>& make);
  WorkPointer message(c10d::OpType type, const char* title, Tensors& tensors, int peer, int tag);

  const std::shared_ptr<WorkTracker> tracker_;
  const c10::intrusive_ptr<BackendOptions> options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::uint64_t stable_rank_;     // of this process in the default group, or here
  const std::string token_;             // no other process group has it
  std::vector<std::uint64_t> members_;  // of all ranks, their ranks in the default group; may be empty
  std::uint64_t shrunk_ = 0;            // how many times
  std::uint64_t reconfigured_ = 0;      // likewise
  mutable std::mutex engine_mutex_;     // for the next two
  std::shared_ptr<Engine> engine_;
  std::string why_none_;   // there is no engine
  std::mutex coalescing_;  // for the next
  std::optional<std::vector<WorkPointer>> coalesced_;
};

}  // namespace shmem_torch
