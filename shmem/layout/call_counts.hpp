// SPDX-License-Identifier: Apache-2.0
// How many calls of each kind a PE has made, and their bytes, for SHMEM_INFO.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shmem {

enum class CallKind : std::size_t { kPut, kGet, kAtomic, kCollective };
constexpr std::size_t kCallKinds = 4;

/// Counted by the PE; read by another one after a barrier, which orders them. So all is relaxed.
class CallCounts {
 public:
  void add(CallKind kind, std::size_t bytes) {
    Count& count = counts_[static_cast<std::size_t>(kind)];
    count.calls.fetch_add(1, std::memory_order_relaxed);
    count.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t calls(std::size_t kind) const {
    return counts_[kind].calls.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes(std::size_t kind) const {
    return counts_[kind].bytes.load(std::memory_order_relaxed);
  }

 private:
  struct Count {
    std::atomic<std::uint64_t> calls, bytes;
  };
  std::array<Count, kCallKinds> counts_;
};

}  // namespace shmem
