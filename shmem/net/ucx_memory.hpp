// SPDX-License-Identifier: Apache-2.0
// Memory that UCX lets other PEs reach.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "shmem/net/network.hpp"
#include "shmem/net/ucx_worker.hpp"

namespace shmem {

/// My segments, registered while it lives.
class UcxMemory {
 public:
  UcxMemory() = default;
  UcxMemory(const UcxMemory&) = delete;
  UcxMemory& operator=(const UcxMemory&) = delete;
  ~UcxMemory();

  /// Once. The worker outlives this.
  Result<void> add(const UcxWorker& worker, const std::vector<std::span<std::byte>>& segments);
  /// What others need to reach a segment; empty where there is none.
  [[nodiscard]] const std::vector<std::byte>& key(std::size_t segment) const { return keys_[segment]; }

 private:
  Result<void> add_segment(std::size_t segment, std::span<std::byte> memory);

  const UcxWorker* worker_ = nullptr;
  std::array<ucp_mem_h, kSegments> handles_{};
  std::array<std::vector<std::byte>, kSegments> keys_;
};

}  // namespace shmem
