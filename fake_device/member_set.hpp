// SPDX-License-Identifier: Apache-2.0
// A set of members of a group, in the form of the mask registers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "uapi/gba_device.h"

namespace fake_device {

class MemberSet {
 public:
  [[nodiscard]] bool contains(unsigned member) const { return (words_[member / 64] >> (member % 64) & 1) != 0; }
  void insert(unsigned member) { words_[member / 64] |= std::uint64_t{1} << (member % 64); }
  void erase(unsigned member) { words_[member / 64] &= ~(std::uint64_t{1} << (member % 64)); }
  void clear() { words_ = {}; }

  [[nodiscard]] std::uint64_t word(unsigned index) const { return words_[index]; }
  void set_word(unsigned index, std::uint64_t value) { words_[index] = value; }

  [[nodiscard]] bool empty() const { return words_ == std::array<std::uint64_t, GBA_MASK_WORDS>{}; }
  [[nodiscard]] unsigned size() const {
    unsigned count = 0;
    for (const auto word : words_) {
      count += static_cast<unsigned>(std::popcount(word));
    }
    return count;
  }

  [[nodiscard]] MemberSet without(const MemberSet& other) const {
    MemberSet result;
    for (unsigned index = 0; index < GBA_MASK_WORDS; ++index) {
      result.words_[index] = words_[index] & ~other.words_[index];
    }
    return result;
  }

  /// Calls visit(member) for each member, in order. `visit` must not change this set.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (unsigned index = 0; index < GBA_MASK_WORDS; ++index) {
      for (auto rest = words_[index]; rest != 0; rest &= rest - 1) {
        visit(index * 64 + static_cast<unsigned>(std::countr_zero(rest)));
      }
    }
  }

  /// The lowest member, or `none` of an empty set.
  [[nodiscard]] unsigned first(unsigned none) const {
    for (unsigned index = 0; index < GBA_MASK_WORDS; ++index) {
      if (words_[index] != 0) {
        return index * 64 + static_cast<unsigned>(std::countr_zero(words_[index]));
      }
    }
    return none;
  }

 private:
  std::array<std::uint64_t, GBA_MASK_WORDS> words_{};
};

}  // namespace fake_device
