// SPDX-License-Identifier: Apache-2.0
// CUDA's driver library, loaded when the first tensor of a device comes: nothing links it. Memory of the host that it
// has pinned, and copies between that and devices.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace shmem_torch {

/// "", or why tensors of CUDA devices cannot be used in this process.
const std::string& cuda_problem();

/// Memory of a pool. Its pages are pinned unless SHMEM_TORCH_PINNED is 0 or the driver cannot: then devices copy to and
/// from it more slowly.
class PinnedMemory {
 public:
  /// For copies of any device, of which this is one. REQUIRES: cuda_problem() is "". Throws std::bad_alloc.
  PinnedMemory(std::size_t bytes, int device);
  PinnedMemory(PinnedMemory&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)),
        size_(other.size_),
        device_(other.device_),
        is_pinned_(other.is_pinned_) {}
  PinnedMemory& operator=(PinnedMemory&&) = delete;
  /// Gives it back to the pool.
  ~PinnedMemory();

  [[nodiscard]] void* data() const { return address_; }

 private:
  void* address_;
  std::size_t size_;
  int device_;
  bool is_pinned_;
};

/// Copies between the host and a device: begun in their order, and made when finish() returns. Of one thread.
class DeviceCopies {
 public:
  /// REQUIRES: cuda_problem() is "". Throws std::runtime_error, as the others.
  explicit DeviceCopies(int device);
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;
  /// Waits for copies that have begun.
  ~DeviceCopies();

  void to_host(void* to, const void* from, std::size_t bytes);
  void to_device(void* to, const void* from, std::size_t bytes);
  void finish();

 private:
  const int device_;
  void* stream_ = nullptr;
  bool is_finished_ = true;
};

}  // namespace shmem_torch
