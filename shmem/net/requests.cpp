// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/requests.hpp"

#include <atomic>
#include <cstring>

#include "shmem/memory/cached_copy.hpp"

namespace shmem {

namespace {

bool aligned(const std::byte* memory, std::size_t size) {
  return reinterpret_cast<std::uintptr_t>(memory) % size == 0;
}

template <typename Word>
void store(std::byte* memory, const std::byte* bytes) {
  Word word = 0;
  std::memcpy(&word, bytes, sizeof word);
  // Release: a reader of the word (wait_until() and similar calls acquire) sees earlier puts.
  std::atomic_ref(*reinterpret_cast<Word*>(memory)).store(word, std::memory_order_release);
}

/// Acquire and release: a word may be a lock, or signal earlier puts.
template <typename Word>
std::optional<std::uint64_t> apply(std::byte* memory, const Request& request) {
  constexpr auto kOrder = std::memory_order_acq_rel;
  const std::atomic_ref word(*reinterpret_cast<Word*>(memory));
  const auto operand = static_cast<Word>(request.operand);
  auto compared = static_cast<Word>(request.compared);
  switch (request.operation) {
    case AtomicOperation::kAdd:
      return word.fetch_add(operand, kOrder);
    case AtomicOperation::kAnd:
      return word.fetch_and(operand, kOrder);
    case AtomicOperation::kOr:
      return word.fetch_or(operand, kOrder);
    case AtomicOperation::kXor:
      return word.fetch_xor(operand, kOrder);
    case AtomicOperation::kSwap:
    case AtomicOperation::kSet:
      return word.exchange(operand, kOrder);
    case AtomicOperation::kCompareSwap:
      word.compare_exchange_strong(compared, operand, kOrder);
      return compared;
    case AtomicOperation::kFetch:
      return word.load(std::memory_order_acquire);
  }
  return std::nullopt;
}

}  // namespace

RequestedMemory::RequestedMemory(const std::vector<std::span<std::byte>>& segments) {
  for (std::size_t segment = 0; segment < segments.size(); ++segment) {
    add(static_cast<Segment>(segment), segments[segment]);
  }
}

void RequestedMemory::add(Segment segment, std::span<std::byte> memory) {
  Memory& place = segments_[static_cast<std::size_t>(segment)];
  if (!memory.empty()) {
    place.begin.store(memory.data(), std::memory_order_relaxed);
  }
  // Release: a request that sees the size sees where the memory begins. Without memory the old beginning is not used.
  place.bytes.store(memory.size(), std::memory_order_release);
}

std::optional<std::span<std::byte>> RequestedMemory::find(const Request& request, std::uint64_t bytes) const {
  const auto segment = static_cast<std::size_t>(request.segment);
  if (segment >= segments_.size()) {
    return std::nullopt;
  }
  const std::size_t size = segments_[segment].bytes.load(std::memory_order_acquire);
  const std::span<std::byte> all(segments_[segment].begin.load(std::memory_order_relaxed), size);
  if (bytes > all.size() || request.offset > all.size() - bytes) {
    return std::nullopt;
  }
  return all.subspan(request.offset, bytes);
}

bool RequestedMemory::put(const Request& request, std::span<const std::byte> bytes) const {
  const auto to = find(request, bytes.size());
  if (!to) {
    return false;
  }
  if (bytes.size() == sizeof(std::uint64_t) && aligned(to->data(), sizeof(std::uint64_t))) {
    store<std::uint64_t>(to->data(), bytes.data());
  } else if (bytes.size() == sizeof(std::uint32_t) && aligned(to->data(), sizeof(std::uint32_t))) {
    store<std::uint32_t>(to->data(), bytes.data());
  } else {
    copy_cached(to->data(), bytes.data(), bytes.size());
  }
  return true;
}

std::optional<std::span<const std::byte>> RequestedMemory::get(const Request& request) const {
  return find(request, request.operand);
}

std::optional<std::uint64_t> RequestedMemory::change(const Request& request) const {
  const auto word = find(request, request.word_size);
  if (!word || (request.word_size != 4 && request.word_size != 8) || !aligned(word->data(), request.word_size)) {
    return std::nullopt;
  }
  return request.word_size == 4 ? apply<std::uint32_t>(word->data(), request)
                                : apply<std::uint64_t>(word->data(), request);
}

}  // namespace shmem
