// SPDX-License-Identifier: Apache-2.0
// The process group of the backend "shmem": what torch.distributed calls. One source for PyTorch 1.13, where a backend
// is a ProcessGroup, and for 2, where it is a Backend.
#pragma once

#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#define SHMEM_TORCH_BASE c10d::Backend
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#define SHMEM_TORCH_BASE c10d::ProcessGroup
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "python/shmem_torch/tensors.hpp"
#include "python/shmem_torch/works.hpp"

namespace shmem_torch {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;

/// The timeout to use for one that torch gives in whole milliseconds. A program that asks for less than a millisecond
/// gives 0, which the library would take for no limit at all.
inline std::chrono::milliseconds at_least_one(std::chrono::milliseconds timeout) {
  return std::max(timeout, std::chrono::milliseconds(1));
}

/// PyTorch's store, as groups use it.
Store store_of(const c10::intrusive_ptr<c10d::Store>& store);

class ProcessGroupShmem final : public SHMEM_TORCH_BASE {
 public:
  /// Collective over the ranks. Throws if they cannot form a group.
  ProcessGroupShmem(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                    std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "shmem"; }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
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
  std::uint64_t getSequenceNumberForGroup() override { return calls_.load(std::memory_order_relaxed); }

#if TORCH_VERSION_MAJOR >= 2
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override;
  /// Calls from now on until endCoalescing(), which returns a work for all of them.
  void startCoalescing() override;
  WorkPointer endCoalescing() override;
#endif

 private:
  [[nodiscard]] std::chrono::milliseconds timeout_of(std::chrono::milliseconds given) const {
    return given < std::chrono::milliseconds(0) ? timeout_ : at_least_one(given);
  }
  WorkPointer give(c10::intrusive_ptr<QueuedWork> work);
  WorkPointer give(c10d::OpType type, const char* title, const Tensors& inputs, const Tensors& results,
                   TensorCall call);
  void tell_refused(const char* name, std::chrono::milliseconds timeout);
  /// For endCoalescing().
  WorkPointer noted(WorkPointer work);
  WorkPointer allreduce_sparse_tensor(const at::Tensor& tensor, const c10d::AllreduceOptions& options);
#if TORCH_VERSION_MAJOR >= 2
  WorkPointer make_each(std::size_t count, const std::function<WorkPointer(std::size_t)>& make);
#endif
  WorkPointer message(c10d::OpType type, const char* title, Tensors& tensors, int peer, int tag);

  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Engine> engine_;
  std::atomic<std::uint64_t> calls_{0};
  std::mutex coalescing_;  // for the next
  std::optional<std::vector<WorkPointer>> coalesced_;
};

}  // namespace shmem_torch
