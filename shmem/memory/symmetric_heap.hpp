// SPDX-License-Identifier: Apache-2.0
// The collective side of the heap: all PEs make the same call, or all PEs hear who did not.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "shmem/job.hpp"
#include "shmem/memory/heap.hpp"
#include "shmem/memory/heap_call.hpp"
#include "shmem/team/verdict.hpp"

namespace shmem {

/// Its calls are made by one thread at a time. Each is collective over the job and meets the others in one barrier,
/// whatever its arguments (a realloc that moves a block: in two). Their calls travel with it, and are compared. The
/// barrier makes the PEs' earlier puts visible, if they were made complete before the call.
///
/// Errors: std::errc::invalid_argument on all PEs if the calls differ, and nothing was done; the same if they are equal
/// and wrong; not_enough_memory; state_not_recoverable where PEs met that are in different routines: their barriers do
/// not go together any more, and the job is to be ended.
class SymmetricHeap {
 public:
  struct Meeting {
    std::function<Result<void>()> barrier;
    std::function<std::uint64_t()> count;  // of the barriers that this PE has made so far
    /// In place of the barrier of a call: have the PEs of all nodes given the same digest? None: all are on one.
    std::function<Result<Verdict>(std::uint64_t digest)> vote = {};
    std::function<void(const HeapCall&)> announce = [](const HeapCall&) {};  // before the barrier of each call
  };

  SymmetricHeap(const Job& job, Meeting meeting)
      : job_(job), heap_(job.memory.heap_size()), meeting_(std::move(meeting)) {}

  /// nullptr with success for size 0.
  Result<void*> malloc(std::size_t size);
  Result<void*> malloc_with_hints(std::size_t size, std::uint64_t hints);
  /// The memory is zero.
  Result<void*> calloc(std::size_t count, std::size_t size);
  Result<void*> align(std::size_t alignment, std::size_t size);
  /// As malloc if `pointer` is nullptr, as free if `size` is 0. Stays in place where it can; else the contents move to
  /// another block, which is aligned as malloc's. After an error the block is as it was.
  Result<void*> realloc(void* pointer, std::size_t size);
  /// nullptr is allowed.
  Result<void> free(void* pointer);

  [[nodiscard]] Heap::Stats stats() const { return heap()->stats(); }
  /// The block, live or free, that `offset` lies in; nothing beyond the heap's end. Any thread.
  [[nodiscard]] std::optional<HeapBlock> block_around(std::size_t offset) const { return heap()->block_around(offset); }

 private:
  /// The heap to one thread alone, to the end of the statement: others look at blocks while one makes a call.
  template <typename AnyHeap>
  struct Access {
    std::unique_lock<std::mutex> lock;
    AnyHeap* heap;
    AnyHeap* operator->() const { return heap; }
  };
  Access<Heap> heap() { return {std::unique_lock(mutex_), &heap_}; }
  [[nodiscard]] Access<const Heap> heap() const { return {std::unique_lock(mutex_), &heap_}; }

  Result<void*> allocate(HeapCall call);
  /// Says what this PE does, meets the others, and finds whoever does something else.
  Result<void> agree(HeapCall call);
  /// Collective: the meeting of a call. What PEs of all nodes do, put together.
  Result<Verdict> meet(const HeapCall& call);
  /// What the pointer of `call` is.
  void look_at(const void* pointer, HeapCall& call) const;

  [[nodiscard]] Error disagreement(const HeapCall& mine) const;
  [[nodiscard]] Error wrong_pointer(const HeapCall& call) const;
  [[nodiscard]] Error exhausted(const HeapCall& call) const;
  [[nodiscard]] std::string self() const { return "shmem: PE " + std::to_string(job_.world_me()) + ": "; }

  const Job& job_;
  mutable std::mutex mutex_;
  Heap heap_;
  Meeting meeting_;
  std::uint64_t calls_ = 0;
};

}  // namespace shmem
