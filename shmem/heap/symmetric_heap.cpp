// SPDX-License-Identifier: Apache-2.0
#include "shmem/heap/symmetric_heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/hash.hpp"
#include "base/size_text.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/heap/block_marks.hpp"
#include "shmem/memory/cached_copy.hpp"

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

/// PeMetadata::heap_calls of a PE that lacks the blocks of the others.
constexpr std::uint64_t kNoCalls = UINT64_MAX;

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

/// For valgrind and AddressSanitizer.
void mark_live(const Heap& heap, std::byte* memory, std::size_t offset) {
  if (!block_marks::are_wanted()) {
    return;
  }
  const auto block = heap.block_around(offset);
  const auto next = block ? heap.block_around(block->end()) : std::nullopt;
  if (block && !block->free()) {
    block_marks::live(memory, *block, next ? &*next : nullptr);
  }
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
  if (block != nullptr) {
    // Before other PEs write to it, which a thread of this process may do for them.
    mark_live(*heap().heap, job_.memory.heap(job_.me), *offset);
  }
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
    mark_live(*heap().heap, job_.memory.heap(job_.me), *offset);
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
    mark_live(*heap().heap, job_.memory.heap(job_.me), call.address);
    return pointer;
  }
  const auto offset = heap()->allocate(size);
  if (!offset) {
    return exhausted(call);
  }
  std::byte* moved = job_.memory.heap(job_.me) + *offset;
  mark_live(*heap().heap, job_.memory.heap(job_.me), *offset);
  copy_cached(moved, pointer, std::min(size, heap()->size_of(call.address).value_or(0)));
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
  const auto block = heap()->block_around(offset);
  const std::size_t bytes = heap()->size_of(offset).value_or(0);
  heap()->release(offset);
  if (block && bytes != 0) {
    block_marks::freed(job_.memory.heap(job_.me), *block);
  }
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

SymmetricHeap::Rendezvous::Callers SymmetricHeap::callers() const {
  return rendezvous_.callers ? rendezvous_.callers() : Rendezvous::Callers{{0, 1, job_.size}, 0};
}

std::uint64_t SymmetricHeap::digest() const {
  std::uint64_t digest = 0;
  const std::size_t size = stats().size;
  for (std::size_t offset = 0; offset < size;) {
    const auto block = heap()->block_around(offset);
    digest = base::mix(base::mix(digest + block->taken) + block->requested);
    offset = block->end();
  }
  return digest;
}

Error SymmetricHeap::differing_heaps(int pe) const {
  return {std::errc::state_not_recoverable,
          fmt::format("{}a PE died in a call on the symmetric heap that has succeeded on some PEs and failed on "
                      "others, among them PE {}: there can be no more such calls in this job",
                      self(), pe)};
}

// The heap of such a PE is zero, and no other PE uses it before this is over: it carries the blocks, which are at least
// 64 bytes each.
void SymmetricHeap::write_blocks_for(int pe) const {
  const auto blocks = heap()->blocks();
  const std::uint64_t count = blocks.size();
  std::byte* const to = job_.memory.heap(pe);
  std::memcpy(to, &count, sizeof count);
  std::memcpy(to + sizeof count, blocks.data(), blocks.size() * sizeof(HeapBlock));
}

Result<void> SymmetricHeap::read_blocks() {
  std::byte* const from = job_.memory.heap(job_.me);
  std::uint64_t count = 0;
  std::memcpy(&count, from, sizeof count);
  std::vector<HeapBlock> blocks(std::min<std::uint64_t>(count, job_.memory.heap_size() / Heap::kMinAlignment + 1));
  const std::size_t bytes = blocks.size() * sizeof(HeapBlock);
  std::memcpy(blocks.data(), from + sizeof count, bytes);
  std::memset(from, 0, sizeof count + bytes);
  if (!heap()->adopt(blocks)) {
    return fail(std::errc::bad_message, self() + "another PE has given it blocks of the heap that do not fit");
  }
  for (const HeapBlock& block : blocks) {
    mark_live(*heap().heap, from, block.offset);
  }
  lacks_blocks_ = false;
  return {};
}

Result<void> SymmetricHeap::share_blocks() {
  PeMetadata& mine = job_.metadata(job_.me);
  // Relaxed: barriers separate the stores from the loads.
  mine.heap_calls.store(lacks_blocks_ ? kNoCalls : calls_, std::memory_order_relaxed);
  if (auto ok = rendezvous_.barrier(); !ok) {
    return ok;
  }
  const TeamMap map = callers().map;
  const auto lacks = [&](int i) {
    return job_.metadata(map.pe(i)).heap_calls.load(std::memory_order_relaxed) == kNoCalls;
  };
  int first = 0;
  bool any = false;
  for (int i = map.size - 1; i >= 0; --i) {
    any = any || lacks(i);
    first = lacks(i) ? first : i;
  }
  if (!any) {
    return {};
  }
  for (int i = 0; i < map.size; ++i) {
    if (lacks(i) && map.pe(first) == job_.me) {
      write_blocks_for(map.pe(i));
    }
  }
  auto ok = rendezvous_.barrier();
  if (ok && lacks_blocks_) {
    ok = read_blocks();
  }
  return ok ? rendezvous_.barrier() : ok;
}

Result<void> SymmetricHeap::regroup() {
  if (!job_.on_several_nodes()) {
    if (auto ok = share_blocks(); !ok) {
      return ok;
    }
  }
  PeMetadata& mine = job_.metadata(job_.me);
  const std::uint64_t blocks = digest();
  // Relaxed: the barrier separates the stores from the loads.
  mine.heap_calls.store(calls_, std::memory_order_relaxed);
  mine.heap_digest.store(blocks, std::memory_order_relaxed);
  if (auto ok = rendezvous_.barrier(); !ok) {
    return ok;
  }
  const TeamMap map = callers().map;
  for (int i = 0; i < map.size; ++i) {
    const PeMetadata& theirs = job_.metadata(map.pe(i));
    calls_ = std::max(calls_, theirs.heap_calls.load(std::memory_order_relaxed));
    if (theirs.heap_digest.load(std::memory_order_relaxed) != blocks) {
      failed_ = differing_heaps(job_.nodes.world(map.pe(i)));
    }
  }
  if (!job_.on_several_nodes() || !rendezvous_.vote) {
    return {};
  }
  // A PE that has failed on its node tells the other nodes so. Number 0 is that of a team on one node.
  const auto verdict = rendezvous_.vote(failed_ ? ~blocks : blocks, calls_ + 1);
  if (!verdict) {
    return verdict.error();
  }
  calls_ = verdict->number != 0 ? verdict->number - 1 : calls_;
  if (!failed_ && !verdict->alike) {
    failed_ = differing_heaps(verdict->other);
  }
  return {};
}

Result<void> SymmetricHeap::agree(HeapCall call) {
  if (failed_) {
    return *failed_;
  }
  rendezvous_.announce(call);
  call.number = ++calls_;
  call.barriers = rendezvous_.count();
  const auto [map, slot] = callers();
  auto& votes = job_.team_sync(slot, rows_of(map).start).heap_vote;
  HeapVote& vote = votes[call.number % votes.size()];
  job_.metadata(job_.me).heap_call[call.number % 2].store(call);
  vote.enter(call);
  const auto verdict = vote_on(call);
  if (!verdict) {
    return verdict.error();
  }

  const bool unanimous = vote.unanimous(map.size);
  if (job_.me == map.pe(0)) {
    // All PEs are in this call, so none reads the previous vote any more; it is used again by the call after the next,
    // which no PE can enter before the first PE enters the next one.
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
    return rendezvous_.vote(digest_of(call), 0);
  }
  auto ok = rendezvous_.barrier();
  return ok ? Result<VoteResult>(VoteResult{}) : ok.error();
}

Error SymmetricHeap::disagreement(const HeapCall& mine) const {
  std::vector<Party> parties;
  bool all_here = true;
  const TeamMap map = callers().map;
  for (int i = 0; i < map.size; ++i) {
    const int pe = map.pe(i);
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
  const std::string call = to_string(mine);
  return {std::errc::state_not_recoverable, self() + call + (call.ends_with(')') ? "" : ",") +
                                                " is collective, but not all PEs are in it: " + list(parties)};
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
