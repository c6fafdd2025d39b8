// SPDX-License-Identifier: Apache-2.0
// Tensors of CUDA devices in a call: the call uses memory of the host in their place, to which their contents are
// copied before it, and from which they are copied after it.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <chrono>
#include <map>
#include <vector>

#include "python/shmem_torch/cuda_driver.hpp"

namespace shmem_torch {

/// The device tensors of one call. The program's thread calls add(); the thread that makes the call does the rest.
class DeviceTensors {
 public:
  enum Use { kRead = 1, kWritten = 2 };

  /// The memory in place of a contiguous tensor, whose contents are those after all that its device's current stream
  /// has been given by now.
  void* add(const at::Tensor& tensor, int use);
  /// The same in memory of the caller's.
  void add_at(void* place, const at::Tensor& tensor, int use);
  /// Memory for add_at(), of tensors of which `like` is one.
  void* buffer(std::size_t bytes, const at::Tensor& like);

  /// Throws, also if the streams take longer than `limit`; below 0 that is no limit.
  void fetch(std::chrono::milliseconds limit);
  /// The tensors have the results when it returns.
  void store() const;

 private:
  struct Part {
    at::Tensor tensor;
    void* place;
    int use;
  };
  template <typename Copy>
  void each_part(int use, Copy copy) const;

  std::vector<Part> parts_;
  std::vector<PinnedMemory> memories_;
  std::map<at::DeviceIndex, c10::Event> ready_;
};

/// Waits for what this thread has given to the current stream of the tensor's device.
void finish_current_stream(const at::Tensor& tensor);

}  // namespace shmem_torch
