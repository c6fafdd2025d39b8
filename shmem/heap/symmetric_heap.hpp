// SPDX-License-Identifier: Apache-2.0
// The collective side of the heap: all PEs make the same call, or all learn which PE did not.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "shmem/layout/heap_call.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/layout/sync_view.hpp"
#include "shmem/layout/vote_result.hpp"
#include "shmem/memory/heap.hpp"

namespace shmem {

/// Called by one thread at a time. Each call is collective over the job and has one barrier (a realloc that moves a
/// block has two). The PEs' calls travel with the barrier and are compared. It makes earlier puts visible if they were
/// completed before the call. Calls that have nothing to do, with size 0 and no block, or to free nullptr, return at
/// once: OpenSHMEM 1.6, section 9.3.
///
/// Errors, on all PEs: std::errc::invalid_argument if the calls differ, in which case nothing was done, or are equal
/// and wrong; not_enough_memory; state_not_recoverable if PEs are in different routines: their barriers do not match
/// any more, and the job must end.
class SymmetricHeap {
 public:
  struct Rendezvous {
    std::function<Result<void>()> barrier;
    std::function<std::uint64_t()> count;  // the number of barriers that this PE has made
    struct Callers {
      TeamMap map;
      int slot = 0;
    };
    /// The PEs of this node that make the calls, and the slot of their team. Empty: all, in slot 0.
    std::function<Callers()> callers = {};
    /// On several nodes, in place of the barrier of a call: have all PEs given the same digest? All get the number of
    /// one of them. Empty on one node.
    std::function<Result<VoteResult>(std::uint64_t digest, std::uint64_t number)> vote = {};
    std::function<void(const HeapCall&)> announce = [](const HeapCall&) {};  // before the barrier of each call
    /// This PE's bytes are not a block any more. After the barrier: no PE uses them.
    std::function<void(std::span<const std::byte>)> released = [](std::span<const std::byte>) {};
  };

  SymmetricHeap(const Job& job, Rendezvous rendezvous)
      : job_(job), heap_(job.memory.heap_size()), rendezvous_(std::move(rendezvous)) {}

  /// nullptr with success for size 0.
  Result<void*> malloc(std::size_t size);
  Result<void*> malloc_with_hints(std::size_t size, std::uint64_t hints);
  /// The memory is zero.
  Result<void*> calloc(std::size_t count, std::size_t size);
  /// An alignment that is not a power of two is rounded up to the next one.
  Result<void*> align(std::size_t alignment, std::size_t size);
  /// As malloc if `pointer` is nullptr, else as free if `size` is 0. Stays in place if possible; else the contents move
  /// to another block, aligned as malloc's. After an error the block is unchanged.
  Result<void*> realloc(void* pointer, std::size_t size);
  /// nullptr is allowed. bad_address: the pointer is inside a live block, and nothing was freed on any PE.
  Result<void> free(void* pointer);

  /// This process has taken the place of a PE: regroup() gives it the blocks that the others have.
  void lack_blocks() { lacks_blocks_ = true; }
  /// Collective over the PEs that are left of the job, which make the calls from now on. If PEs have done different
  /// things because one died in a call, all later calls fail. The Error of the barrier.
  Result<void> regroup();

  [[nodiscard]] Heap::Stats stats() const { return heap()->stats(); }
  /// The block, live or free, that contains `offset`; nothing beyond the heap's end. Any thread.
  [[nodiscard]] std::optional<HeapBlock> block_around(std::size_t offset) const { return heap()->block_around(offset); }

 private:
  void release(std::size_t offset);
  [[nodiscard]] Rendezvous::Callers callers() const;
  /// Of all blocks.
  [[nodiscard]] std::uint64_t digest() const;
  /// Exclusive access to the heap until the end of the statement: other threads look at blocks during a call.
  template <typename AnyHeap>
  struct Access {
    std::unique_lock<std::mutex> lock;
    AnyHeap* heap;
    AnyHeap* operator->() const { return heap; }
  };
  Access<Heap> heap() { return {std::unique_lock(mutex_), &heap_}; }
  [[nodiscard]] Access<const Heap> heap() const { return {std::unique_lock(mutex_), &heap_}; }

  Result<void*> allocate(HeapCall call);
  /// Announces this PE's call, waits for the others, and finds PEs with other calls.
  Result<void> agree(HeapCall call);
  /// Collective: the combined vote of the PEs of all nodes.
  Result<VoteResult> vote_on(const HeapCall& call);
  /// The kind of the pointer of `call`.
  void look_at(const void* pointer, HeapCall& call) const;

  [[nodiscard]] Error differing_heaps(int pe) const;
  /// Called by all callers: gives those that lack the blocks those of the first PE that has them.
  Result<void> share_blocks();
  void write_blocks_for(int pe) const;
  Result<void> read_blocks();
  [[nodiscard]] Error disagreement(const HeapCall& mine) const;
  [[nodiscard]] Error wrong_pointer(const HeapCall& call) const;
  /// The live block that contains the pointer of `call`, which is not its beginning.
  [[nodiscard]] std::optional<HeapBlock> inside_block(const HeapCall& call) const;
  [[nodiscard]] Error exhausted(const HeapCall& call) const;
  [[nodiscard]] std::string self() const { return "shmem: PE " + std::to_string(job_.world_me()) + ": "; }

  const Job& job_;
  mutable std::mutex mutex_;
  Heap heap_;
  Rendezvous rendezvous_;
  std::uint64_t calls_ = 0;
  bool lacks_blocks_ = false;
  std::optional<Error> failed_;
};

}  // namespace shmem
