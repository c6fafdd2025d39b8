// SPDX-License-Identifier: Apache-2.0
// The free parts of the holder's memory, which grows as blocks need it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace shmem::exchange {

/// A part of the memory: [begin, end).
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const { return end - begin; }
};

/// Takes the smallest part that is large enough, so that blocks of one size leave no gaps. Not thread-safe.
class HolderArena {
 public:
  /// What blocks take: lines of the cache, and pages from a page on, since copies are fast between equal places of
  /// pages. REQUIRES: bytes <= 2^62.
  static constexpr std::uint64_t rounded(std::uint64_t bytes) {
    const std::uint64_t unit = bytes < kPage ? kLine : kPage;
    return (bytes + unit - 1) / unit * unit;
  }

  /// The first byte of a part of this size, which is rounded(). Nothing: there is none.
  std::optional<std::uint64_t> take(std::uint64_t size) {
    const auto found = by_size_.lower_bound({size, 0});
    if (found == by_size_.end()) {
      return std::nullopt;
    }
    const auto [has, begin] = *found;
    erase(begin, begin + has);
    if (has > size) {
      insert(begin + size, begin + has);
    }
    return begin;
  }
  /// REQUIRES: it is in use, or the memory has grown by it.
  void give(Part part) {
    const auto next = by_begin_.lower_bound(part.begin);
    Part whole = part;
    if (next != by_begin_.end() && next->first == part.end) {
      whole.end = next->second;
    }
    if (next != by_begin_.begin()) {
      if (const auto before = std::prev(next); before->second == part.begin) {
        whole.begin = before->first;
      }
    }
    if (whole.end != part.end) {
      erase(part.end, whole.end);
    }
    if (whole.begin != part.begin) {
      erase(whole.begin, part.begin);
    }
    insert(whole.begin, whole.end);
  }
  /// The free part that has this byte.
  [[nodiscard]] std::optional<Part> at(std::uint64_t place) const {
    const auto next = by_begin_.upper_bound(place);
    if (next == by_begin_.begin() || std::prev(next)->second <= place) {
      return std::nullopt;
    }
    return Part{std::prev(next)->first, std::prev(next)->second};
  }

 private:
  static constexpr std::uint64_t kLine = 64;
  static constexpr std::uint64_t kPage = 4096;

  void insert(std::uint64_t begin, std::uint64_t end) {
    by_begin_[begin] = end;
    by_size_.insert({end - begin, begin});
  }
  void erase(std::uint64_t begin, std::uint64_t end) {
    by_begin_.erase(begin);
    by_size_.erase({end - begin, begin});
  }

  std::map<std::uint64_t, std::uint64_t> by_begin_;  // ends; no two adjoin
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
};

}  // namespace shmem::exchange
