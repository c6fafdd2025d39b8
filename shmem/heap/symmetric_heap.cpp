// SPDX-License-Identifier: Apache-2.0
#include "shmem/heap/symmetric_heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/size_text.hpp"
#include "shmem/bootstrap/message_text.hpp"

namespace shmem {
namespace {

/// Nothing on overflow.
std::optional<std::size_t> bytes_of(const HeapCall& call) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(call.count, call.size, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

/// The least power of two that is not below the alignment that the program asks for.
std::size_t power_of_two(std::size_t alignment) {
  constexpr std::size_t kLargest = std::size_t{1} << 63;
  return alignment < kLargest ? std::bit_ceil(std::max<std::size_t>(alignment, Heap::kMinAlignment)) : kLargest;
}

/// Groups of PEs with equal calls, in the order of their first PEs.
struct Party {
  std::string what;
  std::vector<int> pes;
};

void add(std::vector<Party>& parties, const std::string& what, int pe) {
  const auto found =
      std::find_if(parties.begin(), parties.end(), [&](const Party& party) { return party.what == what; });
  (found != parties.end() ? *found : parties.emplace_back(Party{what, {}})).pes.push_back(pe);
}

std::string list(const std::vector<Party>& parties) {
  constexpr std::size_t kMostNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(parties.size(), kMostNamed); ++i) {
    text += (i > 0 ? "; " : "") + pe_list(parties[i].pes) + ": " + parties[i].what;
  }
  return text + (parties.size() > kMostNamed ? "; and others" : "");
}

}  // namespace

Result<void*> SymmetricHeap::malloc(std::size_t size) {
  return allocate({.routine = HeapRoutine::kMalloc, .size = size});
}

Result<void*> SymmetricHeap::malloc_with_hints(std::size_t size, std::uint64_t hints) {
  // The known hints ask for cache lines of their own, which every block has.
  return allocate({.routine = HeapRoutine::kMallocWithHints, .size = size, .hints = hints});
}

Result<void*> SymmetricHeap::calloc(std::size_t count, std::size_t size) {
  return allocate({.routine = HeapRoutine::kCalloc, .count = count, .size = size});
}

Result<void*> SymmetricHeap::align(std::size_t alignment, std::size_t size) {
  return allocate({.routine = HeapRoutine::kAlign, .size = size, .alignment = alignment});
}

Result<void*> SymmetricHeap::allocate(HeapCall call) {
  const auto bytes = bytes_of(call);
  if (bytes && *bytes == 0) {
    return nullptr;
  }
  // Wrong arguments too are compared before they are refused: this is a collective call.
  const auto offset = bytes ? heap()->allocate(*bytes, power_of_two(call.alignment)) : std::nullopt;
  std::byte* block = offset ? job_.memory.heap(job_.me) + *offset : nullptr;
  if (block != nullptr && call.routine == HeapRoutine::kCalloc) {
    std::memset(block, 0, *bytes);
  }

  // The offset is not compared: equal histories of equal calls give equal offsets.
  if (auto ok = agree(call); !ok) {
    if (offset) {
      release(*offset);
    }
    return ok.error();
  }
  if (!bytes) {
    return fail(std::errc::not_enough_memory, self() + to_string(call) + " is more bytes than can be addressed");
  }
  if (!offset) {
    return exhausted(call);
  }
  return block;
}

Result<void*> SymmetricHeap::realloc(void* pointer, std::size_t size) {
  if (pointer == nullptr && size == 0) {
    return nullptr;
  }
  HeapCall call{.routine = HeapRoutine::kRealloc, .size = size};
  look_at(pointer, call);
  if (auto ok = agree(call); !ok) {
    return ok.error();
  }
  // From here on all PEs do the same.
  if (call.pointer == HeapPointer::kNull) {
    const auto offset = heap()->allocate(size);
    if (!offset) {
      return exhausted(call);
    }
    return job_.memory.heap(job_.me) + *offset;
  }
  if (call.pointer != HeapPointer::kLive) {
    return wrong_pointer(call);
  }
  if (size == 0) {
    release(call.address);
    return nullptr;
  }
  if (heap()->resize(call.address, size)) {
    return pointer;
  }
  const auto offset = heap()->allocate(size);
  if (!offset) {
    return exhausted(call);
  }
  std::byte* moved = job_.memory.heap(job_.me) + *offset;
  std::memcpy(moved, pointer, std::min(size, heap()->size_of(call.address).value_or(0)));
  release(call.address);
  // Other PEs may write to the new block once they have returned, so it must have its contents before that.
  if (auto ok = rendezvous_.barrier(); !ok) {
    return ok.error();
  }
  return moved;
}

Result<void> SymmetricHeap::free(void* pointer) {
  if (pointer == nullptr) {
    return {};
  }
  HeapCall call{.routine = HeapRoutine::kFree};
  look_at(pointer, call);
  if (auto ok = agree(call); !ok) {
    return ok;
  }
  if (call.pointer != HeapPointer::kLive) {
    Error error = wrong_pointer(call);
    error.code = inside_block(call) ? std::errc::bad_address : error.code;
    return error;
  }
  release(call.address);
  return {};
}

void SymmetricHeap::release(std::size_t offset) {
  const std::size_t bytes = heap()->size_of(offset).value_or(0);
  heap()->release(offset);
  rendezvous_.released({job_.memory.heap(job_.me) + offset, bytes});
}

void SymmetricHeap::look_at(const void* pointer, HeapCall& call) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto offset = address - reinterpret_cast<std::uintptr_t>(job_.memory.heap(job_.me));
  if (pointer == nullptr) {
    call.pointer = HeapPointer::kNull;
  } else if (offset >= job_.memory.heap_size()) {
    call.pointer = HeapPointer::kForeign;
    call.address = address;
  } else {
    call.pointer = heap()->size_of(offset) ? HeapPointer::kLive : HeapPointer::kNotLive;
    call.address = offset;
  }
}

Result<void> SymmetricHeap::agree(HeapCall call) {
  rendezvous_.announce(call);
  call.number = ++calls_;
  call.barriers = rendezvous_.count();
  auto& votes = job_.metadata(0).heap_vote;
  HeapVote& vote = votes[call.number % votes.size()];
  job_.metadata(job_.me).heap_call[call.number % 2].store(call);
  vote.enter(call);
  const auto verdict = vote_on(call);
  if (!verdict) {
    return verdict.error();
  }

  const bool unanimous = vote.unanimous(job_.size);
  if (job_.me == 0) {
    // All PEs are in this call, so none reads the previous vote any more; it is used again by the call after the next,
    // which no PE can enter before PE 0 enters the next one.
    votes[(call.number + 2) % votes.size()].clear();
  }
  if (!unanimous) {
    return disagreement(call);
  }
  if (verdict->alike) {
    return {};
  }
  return fail(
      std::errc::invalid_argument,
      fmt::format("{}{}: the PEs do not make the same call on the symmetric heap, so nothing was done: PE {} on {} "
                  "makes another one than PE 0 on {}",
                  self(), to_string(call), verdict->other, job_.nodes.host(verdict->other), job_.nodes.host(0)));
}

Result<VoteResult> SymmetricHeap::vote_on(const HeapCall& call) {
  if (rendezvous_.vote) {
    return rendezvous_.vote(digest_of(call));
  }
  auto ok = rendezvous_.barrier();
  return ok ? Result<VoteResult>(VoteResult{}) : ok.error();
}

Error SymmetricHeap::disagreement(const HeapCall& mine) const {
  std::vector<Party> parties;
  bool all_here = true;
  for (int pe = 0; pe < job_.size; ++pe) {
    const auto& calls = job_.metadata(pe).heap_call;
    const HeapCall theirs = calls[mine.number % 2].load();
    const bool here = theirs.number == mine.number && theirs.barriers == mine.barriers;
    all_here = all_here && here;
    add(parties, here ? to_string(theirs) : "in another routine", job_.nodes.world(pe));
  }
  if (all_here) {
    return {std::errc::invalid_argument,
            self() + "the PEs do not make the same call on the symmetric heap, so nothing was done: " + list(parties)};
  }
  return {std::errc::state_not_recoverable,
          self() + to_string(mine) + " is collective, but not all PEs are in it: " + list(parties)};
}

std::optional<HeapBlock> SymmetricHeap::inside_block(const HeapCall& call) const {
  const auto block = call.pointer == HeapPointer::kNotLive ? heap()->block_around(call.address) : std::nullopt;
  return block && !block->free() ? block : std::nullopt;
}

Error SymmetricHeap::wrong_pointer(const HeapCall& call) const {
  std::string text = self() + to_string(call);
  if (const auto block = inside_block(call)) {
    text += fmt::format("; it lies in the block of {} bytes at offset {}", block->requested, block->offset);
  } else if (call.pointer == HeapPointer::kNotLive) {
    text += "; that memory is free (was it freed before?)";
  }
  return {std::errc::invalid_argument, std::move(text)};
}

Error SymmetricHeap::exhausted(const HeapCall& call) const {
  const Heap::Stats now = heap()->stats();
  return {
      std::errc::not_enough_memory,
      fmt::format("{}{}: the symmetric heap has no room for that: it has {}, {} bytes of it are used, and the largest "
                  "free block has {} bytes (set SHMEM_SYMMETRIC_SIZE to more)",
                  self(), to_string(call), base::size_text(now.size), now.used, now.largest_free)};
}

}  // namespace shmem
