// SPDX-License-Identifier: Apache-2.0
// The collective side of the heap: all PEs make the same call, or all PEs hear who did not.
#pragma once

#include <functional>

#include "shmem/job.hpp"
#include "shmem/memory/heap.hpp"

namespace shmem {

/// Used by one thread at a time. Each call is collective over the job and ends (free: begins) with `barrier`.
class SymmetricHeap {
 public:
  using Barrier = std::function<Result<void>()>;

  SymmetricHeap(const Job& job, Barrier barrier)
      : job_(job), heap_(job.memory.heap_size()), barrier_(std::move(barrier)) {}

  /// nullptr with success for size 0, as OpenSHMEM says. Memory is zeroed if `zero`.
  Result<void*> allocate(std::size_t size, std::size_t alignment, bool zero);
  /// nullptr is allowed and does nothing, on all PEs or on none.
  Result<void> release(void* pointer);

  [[nodiscard]] Heap::Stats stats() const { return heap_.stats(); }

 private:
  enum class Kind : std::uint64_t { kAllocate = 1, kRelease = 2 };

  /// Says what this PE does, meets the others, and finds whoever does something else.
  Result<void> agree(Kind kind, std::size_t size, std::size_t alignment, std::size_t offset);
  [[nodiscard]] std::string describe_disagreement(std::size_t parity) const;
  [[nodiscard]] Error exhausted(std::size_t size, std::size_t alignment) const;

  const Job& job_;
  Heap heap_;
  Barrier barrier_;
  std::uint64_t calls_ = 0;
};

}  // namespace shmem
