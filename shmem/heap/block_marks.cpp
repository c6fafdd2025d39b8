// SPDX-License-Identifier: Apache-2.0
#include "shmem/heap/block_marks.hpp"

#include <algorithm>
#include <map>

#include "base/valgrind.hpp"

// AddressSanitizer's, if the program has it: libshmem itself need not be built with it.
extern "C" {
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* address, std::size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t bytes);
}

namespace shmem::block_marks {
namespace {

/// How much of a free block behind a live one is marked: the whole heap would cost an eighth of its size in memory.
constexpr std::size_t kGuard = std::size_t{64} << 10;

bool has_sanitizer() {
  return __asan_poison_memory_region != nullptr && __asan_unpoison_memory_region != nullptr;
}

/// What is marked: the ends of live blocks with what follows them, and freed blocks; by their beginnings.
struct Marks {
  std::map<std::byte*, std::size_t> live;
  std::byte* first = nullptr;
  std::byte* last = nullptr;  // behind it
};
Marks& marks() {
  static Marks& all = *new Marks;  // never destroyed: exit handlers free blocks, too
  return all;
}

void forbid(std::byte* begin, std::size_t bytes) {
  Marks& all = marks();
  all.first = all.first == nullptr ? begin : std::min(all.first, begin);
  all.last = std::max(all.last, begin + bytes);
  if (has_sanitizer()) {
    __asan_poison_memory_region(begin, bytes);
  }
  VALGRIND_MAKE_MEM_NOACCESS(begin, bytes);
}

void allow(std::byte* begin, std::size_t bytes) {
  if (has_sanitizer()) {
    __asan_unpoison_memory_region(begin, bytes);
  }
}

bool wanted = false;

void end_block(std::byte* block) {
  if (marks().live.erase(block) != 0) {
    VALGRIND_FREELIKE_BLOCK(block, 0);
  }
}

}  // namespace

void begin() {
  wanted = has_sanitizer() || RUNNING_ON_VALGRIND != 0;
}

bool are_wanted() {
  return wanted;
}

void live(std::byte* heap, const HeapBlock& block, const HeapBlock* next) {
  if (!are_wanted()) {
    return;
  }
  std::byte* const begin = heap + block.offset;
  end_block(begin);
  allow(begin, block.taken);
  // Defined, as if zeroed.
  VALGRIND_MALLOCLIKE_BLOCK(begin, block.requested, 0, 1);
  marks().live[begin] = block.requested;
  const std::size_t behind = next != nullptr && next->free() ? std::min(next->taken, kGuard) : 0;
  forbid(begin + block.requested, block.taken - block.requested + behind);
}

void freed(std::byte* heap, const HeapBlock& block) {
  if (!are_wanted()) {
    return;
  }
  end_block(heap + block.offset);
  forbid(heap + block.offset, block.taken);
}

void end() {
  if (!are_wanted()) {
    return;
  }
  Marks& all = marks();
  while (!all.live.empty()) {
    std::byte* const block = all.live.begin()->first;
    const std::size_t bytes = all.live.begin()->second;
    end_block(block);
    VALGRIND_MAKE_MEM_DEFINED(block, bytes);
  }
  if (all.first != nullptr) {
    allow(all.first, static_cast<std::size_t>(all.last - all.first));
    VALGRIND_MAKE_MEM_DEFINED(all.first, static_cast<std::size_t>(all.last - all.first));
  }
  all = Marks{};
  wanted = false;
}

}  // namespace shmem::block_marks
