// SPDX-License-Identifier: Apache-2.0
// One-sided operations on registered tensors, c10d::Window: each rank writes to the tensors of the others.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "python/shmem_torch/versions.hpp"
#include "python/shmem_torch/works.hpp"

namespace shmem_torch {

/// Thread-safe. The ranks are on one node. It keeps the group: as long as there is a window, this rank has not left it.
class Window final : public WindowBase {
 public:
  explicit Window(std::shared_ptr<Engine> engine, int rank) : engine_(std::move(engine)), rank_(rank) {}

  /// Collective. A tensor of symmetric memory (shmem_torch.empty) is used where it is; the storage of another one is
  /// moved to such memory, with what is in it, and stays there. Its address is another one then.
  void tensor_register(const at::Tensor& tensor, bool owning) override;
  /// Collective: when it returns, no rank writes to the tensor by this window any more.
  void tensor_deregister() override;
  /// When it returns, the elements are in the tensor of that rank, which a signal after it tells.
  WorkPointer put(const at::Tensor& tensor, std::int64_t rank, std::int64_t offset, bool asynchronous,
                  const PutOptions& options) override;
  /// The tensor of that rank, for loads and stores.
  at::Tensor map_remote_tensor(std::int64_t rank) override;
  /// Signals from one rank to another are counted: each is waited for once.
  WorkPointer signal(std::int64_t rank, bool asynchronous, const SignalOptions& options) override;
  WorkPointer wait_signal(std::int64_t rank, bool asynchronous, const WaitSignalOptions& options) override;
  WindowAttr get_attr(std::int64_t rank) override;

 private:
  struct Area;
  [[nodiscard]] std::shared_ptr<Area> area(const char* call) const;
  [[nodiscard]] std::shared_ptr<Area> area_with(const char* call, std::int64_t rank) const;
  /// Collective, in the order of the group's other calls. Throws if one of them does.
  void run(const char* call, std::function<std::string(std::chrono::milliseconds timeout)> body) const;

  const std::shared_ptr<Engine> engine_;
  const int rank_;
  mutable std::mutex mutex_;    // for the next
  std::shared_ptr<Area> area_;  // while a tensor is registered
};

}  // namespace shmem_torch
