// SPDX-License-Identifier: Apache-2.0
#include "shmem/checking/board.hpp"

#include <algorithm>
#include <cstring>

namespace shmem {
namespace {

std::uint64_t pair(int high, int low) {
  return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
}

// Slots are from -1, so that neither pair of a set is 0.
std::uint64_t members_word(const CallSet& set) {
  return pair(set.slot + 2, set.map.start);
}

std::uint64_t shape_word(const CallSet& set) {
  return pair(set.map.stride, set.map.size);
}

}  // namespace

// Relaxed: the number of the call orders them.
void CallText::store(const std::string& text) {
  Words words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), sizeof words - 1));
  for (std::size_t i = 0; i < words.size(); ++i) {
    words_[i].store(words[i], std::memory_order_relaxed);
  }
}

std::string CallText::load() const {
  Words words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = words_[i].load(std::memory_order_relaxed);
  }
  const char* text = reinterpret_cast<const char*>(words.data());
  return {text, ::strnlen(text, sizeof words)};
}

std::uint64_t CallEntry::count_of(const CallSet& set) const {
  // Acquire: pairs with use_for() and free(), which change `members_` first and last, so that a count of another set is
  // never taken for one of this set; and with enter().
  if (members_.load(std::memory_order_acquire) != members_word(set) ||
      shape_.load(std::memory_order_acquire) != shape_word(set)) {
    return 0;
  }
  const std::uint64_t count = count_.load(std::memory_order_acquire);
  return members_.load(std::memory_order_relaxed) == members_word(set) ? count : 0;
}

CallSet CallEntry::set() const {
  // Relaxed: for messages.
  const std::uint64_t first = members_.load(std::memory_order_relaxed);
  const std::uint64_t second = shape_.load(std::memory_order_relaxed);
  return {
      static_cast<int>(first >> 32) - 2,
      {static_cast<int>(first & UINT32_MAX), static_cast<int>(second >> 32), static_cast<int>(second & UINT32_MAX)}};
}

void CallEntry::use_for(const CallSet& set) {
  count_.store(0, std::memory_order_relaxed);
  shape_.store(shape_word(set), std::memory_order_release);
  members_.store(members_word(set), std::memory_order_release);
}

std::uint64_t CallEntry::enter(const std::string& text) {
  const std::uint64_t count = count_.load(std::memory_order_relaxed) + 1;
  text_[count % text_.size()].store(text);
  count_.store(count, std::memory_order_seq_cst);
  return count;
}

}  // namespace shmem
