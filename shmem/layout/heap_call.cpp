// SPDX-License-Identifier: Apache-2.0
#include "shmem/layout/heap_call.hpp"

#include <cstdio>

#include "base/hash.hpp"

namespace shmem {

namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string pointer_text(const HeapCall& call) {
  if (call.pointer == HeapPointer::kNull) {
    return "NULL";
  }
  return call.pointer == HeapPointer::kForeign ? hexadecimal(call.address) : "offset " + std::to_string(call.address);
}

std::string pointer_problem(const HeapCall& call) {
  if (call.pointer == HeapPointer::kForeign) {
    return ", which is not in the symmetric heap";
  }
  return call.pointer == HeapPointer::kNotLive ? ", where no live block begins" : "";
}

}  // namespace

std::string to_string(const HeapCall& call) {
  const std::string size = std::to_string(call.size);
  switch (call.routine) {
    case HeapRoutine::kNone:
      return "no call on the heap";
    case HeapRoutine::kMalloc:
      return "shmem_malloc(" + size + ")";
    case HeapRoutine::kMallocWithHints:
      return "shmem_malloc_with_hints(" + size + ", " + hexadecimal(call.hints) + ")";
    case HeapRoutine::kCalloc:
      return "shmem_calloc(" + std::to_string(call.count) + ", " + size + ")";
    case HeapRoutine::kAlign:
      return "shmem_align(" + std::to_string(call.alignment) + ", " + size + ")";
    case HeapRoutine::kRealloc:
      return "shmem_realloc(" + pointer_text(call) + ", " + size + ")" + pointer_problem(call);
    case HeapRoutine::kFree:
      return "shmem_free(" + pointer_text(call) + ")" + pointer_problem(call);
  }
  return "";
}

std::uint64_t digest_of(const HeapCall& call) {
  std::uint64_t digest = 0;
  for (const std::uint64_t word : std::bit_cast<std::array<std::uint64_t, sizeof(HeapCall) / 8>>(call)) {
    digest = base::mix((digest ^ word) + base::kGoldenRatio);
  }
  return digest != 0 ? digest : 1;
}

// Relaxed: the barrier between store and load orders them, and without one the text may be wrong.
void SharedHeapCall::store(const HeapCall& call) {
  const auto words = std::bit_cast<Words>(call);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words_[i].store(words[i], std::memory_order_relaxed);
  }
}

HeapCall SharedHeapCall::load() const {
  Words words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = words_[i].load(std::memory_order_relaxed);
  }
  return std::bit_cast<HeapCall>(words);
}

// Relaxed: the call's barrier separates these stores from unanimous().
// Relaxed: each PE enters before the call's barrier and asks after it; PE 0 clears a vote two calls ahead.
void HeapVote::enter(const HeapCall& call) {
  const std::uint64_t mine = digest_of(call);
  std::uint64_t first = 0;
  if (!digest_.compare_exchange_strong(first, mine, std::memory_order_relaxed) && first != mine) {
    differ_.store(1, std::memory_order_relaxed);
  }
  entered_.fetch_add(1, std::memory_order_relaxed);
}

bool HeapVote::unanimous(int pes) const {
  return differ_.load(std::memory_order_relaxed) == 0 &&
         entered_.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(pes);
}

void HeapVote::clear() {
  digest_.store(0, std::memory_order_relaxed);
  entered_.store(0, std::memory_order_relaxed);
  differ_.store(0, std::memory_order_relaxed);
}

}  // namespace shmem
