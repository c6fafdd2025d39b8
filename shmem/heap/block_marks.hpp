// SPDX-License-Identifier: Apache-2.0
// Which bytes of the symmetric heap belong to blocks, for valgrind and AddressSanitizer: they then report loads and
// stores of the program behind the end of a block, and of blocks that are freed. Only of this PE's own heap, by its own
// address. Does nothing in programs without either, or before begin(): a process has one such heap, but for tests with
// PEs that are threads. Called by one thread at a time.
#pragma once

#include <cstddef>

#include "shmem/memory/heap.hpp"

namespace shmem::block_marks {

/// From now on, if this process runs in valgrind or has AddressSanitizer, are_wanted().
void begin();
bool are_wanted();

/// A block at `heap` + `block`.offset is live, or has another size. Its contents are defined: other PEs may write them.
/// `next` is the block after it, or nullptr at the end of the heap.
void live(std::byte* heap, const HeapBlock& block, const HeapBlock* next);
/// It is free.
void freed(std::byte* heap, const HeapBlock& block);
/// All bytes of the heap may be used again by anybody: it is about to end.
void end();

}  // namespace shmem::block_marks
