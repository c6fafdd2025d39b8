// SPDX-License-Identifier: Apache-2.0
// The memory that other PEs reach through this process's UCX worker.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "shmem/layout/remote_board.hpp"
#include "shmem/net/ucx/names.hpp"

namespace shmem {

/// This PE's segments. Without one-sided operations no key is needed, and nothing is registered.
class UcxMemory {
 public:
  UcxMemory() = default;
  UcxMemory(const UcxMemory&) = delete;
  UcxMemory& operator=(const UcxMemory&) = delete;
  ~UcxMemory();

  /// Once, those from the start to the end. The worker outlives this.
  Result<void> add(const UcxWorker& worker, const std::vector<std::span<std::byte>>& segments);
  /// The key by which other PEs reach a segment from the start on; empty without a segment.
  [[nodiscard]] const std::vector<std::byte>& key(std::size_t segment) const { return keys_[segment]; }

  // Those that come and go, by one thread at a time. After the call above.
  /// The segment's key.
  Result<std::vector<std::byte>> add(Segment segment, std::span<std::byte> memory);
  void remove(Segment segment);

 private:
  Result<std::vector<std::byte>> add_segment(std::size_t segment, std::span<std::byte> memory);

  const UcxWorker* worker_ = nullptr;
  std::array<ucp_mem_h, kMostSegments> handles_{};
  std::array<std::vector<std::byte>, kSegments> keys_;
};

}  // namespace shmem
