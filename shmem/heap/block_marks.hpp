// SPDX-License-Identifier: Apache-2.0
// Which bytes of the symmetric heap belong to blocks, for valgrind and AddressSanitizer: they then report loads and
// stores of the program behind the end of a block, and of blocks that are freed. Only of this PE's own heap, by its own
// address. Do nothing in programs without either. Called by one thread at a time.
#pragma once

#include <cstddef>

#include "shmem/memory/heap.hpp"

namespace shmem::block_marks {

/// True if this process runs in valgrind or has AddressSanitizer.
bool are_wanted();

/// A block at `heap` + `block`.offset is live, or has another size. Its contents are defined: other PEs may write them.
/// `next` is the block after it, or nullptr at the end of the heap.
void live(std::byte* heap, const HeapBlock& block, const HeapBlock* next);
/// It is free.
void freed(std::byte* heap, const HeapBlock& block);
/// All bytes of the heap may be used again by anybody: it is about to end.
void forget();

}  // namespace shmem::block_marks
