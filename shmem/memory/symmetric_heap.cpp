// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/symmetric_heap.hpp"

#include <bit>
#include <cstring>

namespace shmem {
namespace {

bool same(const HeapCall& a, const HeapCall& b) {
  return a.kind == b.kind && a.size == b.size && a.alignment == b.alignment && a.offset == b.offset;
}

std::string describe(const HeapCall& call, bool allocation) {
  if (!allocation) {
    return "frees offset " + std::to_string(call.offset);
  }
  return "allocates " + std::to_string(call.size) + " bytes aligned to " + std::to_string(call.alignment);
}

}  // namespace

std::string SymmetricHeap::describe_disagreement(std::size_t parity) const {
  constexpr int kMostNamed = 8;
  std::string text = "shmem: PE " + std::to_string(job_.me) +
                     ": the PEs do not make the same call on the symmetric heap, so nothing was done:";
  int named = 0;
  // The first PE of each run of equal calls is enough to see who differs.
  for (int pe = 0; pe < job_.size && named < kMostNamed; ++pe) {
    const HeapCall& call = job_.metadata(pe).heap_call[parity];
    if (pe > 0 && same(call, job_.metadata(pe - 1).heap_call[parity])) {
      continue;
    }
    text += (named++ > 0 ? "; PE " : " PE ") + std::to_string(pe) + " " +
            describe(call, call.kind == static_cast<std::uint64_t>(Kind::kAllocate));
  }
  return text;
}

Result<void> SymmetricHeap::agree(Kind kind, std::size_t size, std::size_t alignment, std::size_t offset) {
  const std::size_t parity = ++calls_ & 1;
  const HeapCall mine{static_cast<std::uint64_t>(kind), size, alignment, offset};
  job_.metadata(job_.me).heap_call[parity] = mine;
  if (auto ok = barrier_(); !ok) {
    return ok;
  }
  for (int pe = 0; pe < job_.size; ++pe) {
    if (!same(mine, job_.metadata(pe).heap_call[parity])) {
      return fail(std::errc::invalid_argument, describe_disagreement(parity));
    }
  }
  return {};
}

Error SymmetricHeap::exhausted(std::size_t size, std::size_t alignment) const {
  const Heap::Stats now = heap_.stats();
  return {std::errc::not_enough_memory,
          "shmem: PE " + std::to_string(job_.me) + ": the symmetric heap has no room for " + std::to_string(size) +
              " bytes aligned to " + std::to_string(alignment) + ": " + std::to_string(now.used) + " of " +
              std::to_string(now.size) + " bytes are used, the largest free block is " +
              std::to_string(now.largest_free) + " (set SHMEM_SYMMETRIC_SIZE)"};
}

Result<void*> SymmetricHeap::allocate(std::size_t size, std::size_t alignment, bool zero) {
  // Wrong arguments too are compared with the others' before they are refused: this is a collective call.
  const bool aligned = std::has_single_bit(alignment) && alignment % sizeof(void*) == 0;
  const auto offset = size > 0 && aligned ? heap_.allocate(size, alignment) : std::nullopt;
  std::byte* block = offset ? job_.memory.heap(job_.me) + *offset : nullptr;
  if (block != nullptr && zero) {
    std::memset(block, 0, size);
  }
  // The offset is not compared: equal histories of equal calls give equal offsets.
  if (auto ok = agree(Kind::kAllocate, size, alignment, 0); !ok) {
    if (offset) {
      heap_.release(*offset);
    }
    return tl::make_unexpected(ok.error());
  }
  if (!aligned) {
    return fail(std::errc::invalid_argument, "shmem: PE " + std::to_string(job_.me) + ": alignment " +
                                                 std::to_string(alignment) +
                                                 " is not a power of two and a multiple of sizeof(void*)");
  }
  if (size > 0 && !offset) {
    return tl::make_unexpected(exhausted(size, alignment));
  }
  return block;
}

Result<void> SymmetricHeap::release(void* pointer) {
  if (pointer == nullptr) {
    return {};
  }
  const bool inside = job_.translate(pointer, job_.me) != nullptr;
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - job_.memory.heap(job_.me));
  if (!inside || !heap_.size_of(offset)) {
    return fail(std::errc::invalid_argument,
                "shmem: PE " + std::to_string(job_.me) +
                    ": cannot free an address that no live block of the symmetric heap begins at");
  }
  if (auto ok = agree(Kind::kRelease, 0, 0, offset); !ok) {
    return ok;
  }
  heap_.release(offset);
  return {};
}

}  // namespace shmem
