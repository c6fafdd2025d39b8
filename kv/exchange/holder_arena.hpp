// SPDX-License-Identifier: Apache-2.0
// The free parts of the holder's memory, which grows as blocks need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace shmem::exchange {

/// A part of the memory: [begin, end).
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const { return end - begin; }
};

/// Takes the smallest part that is large enough, so that blocks of one size leave no gaps. Giving a part back takes no
/// memory: what notes it was made when the part was taken. Not thread-safe.
class HolderArena {
 public:
  /// What blocks take: lines of the cache, and pages from a page on, since copies are fast between equal places of
  /// pages. REQUIRES: bytes <= 2^62.
  static constexpr std::uint64_t rounded(std::uint64_t bytes) {
    const std::uint64_t unit = bytes < kPage ? kLine : kPage;
    return (bytes + unit - 1) / unit * unit;
  }

  /// The first byte of a part of this size, which is rounded(). Nothing: no free part is large enough.
  std::optional<std::uint64_t> take(std::uint64_t size) {
    const auto found = by_size_.lower_bound({size, 0});
    if (found == by_size_.end()) {
      return std::nullopt;
    }
    reserve();
    ++taken_;
    const auto [has, begin] = *found;
    erase(begin, begin + has);
    if (has > size) {
      insert(begin + size, begin + has);
    }
    return begin;
  }
  /// Makes what give() needs for one more part, which is taken or by which the memory grows.
  void reserve() {
    if (const std::size_t most = spares_.size() + by_begin_.size() + 1; spares_.capacity() < most) {
      spares_.reserve(2 * most);
    }
    if (spares_.size() <= taken_) {
      ByBegin begins{{0, 0}};
      BySize sizes{{0, 0}};
      spares_.push_back({begins.extract(begins.begin()), sizes.extract(sizes.begin())});
    }
  }
  void grow(Part part) {
    reserve();
    insert_joined(part);
  }
  /// REQUIRES: it was taken.
  void give(Part part) noexcept {
    --taken_;
    insert_joined(part);
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

  using ByBegin = std::map<std::uint64_t, std::uint64_t>;
  using BySize = std::set<std::pair<std::uint64_t, std::uint64_t>>;
  /// The nodes of a free part.
  struct Spare {
    ByBegin::node_type begin;
    BySize::node_type size;
  };

  void insert_joined(Part part) noexcept {
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
  void insert(std::uint64_t begin, std::uint64_t end) noexcept {
    Spare spare = std::move(spares_.back());
    spares_.pop_back();
    spare.begin.key() = begin;
    spare.begin.mapped() = end;
    spare.size.value() = {end - begin, begin};
    by_begin_.insert(std::move(spare.begin));
    by_size_.insert(std::move(spare.size));
  }
  void erase(std::uint64_t begin, std::uint64_t end) noexcept {
    spares_.push_back({by_begin_.extract(begin), by_size_.extract({end - begin, begin})});
  }

  ByBegin by_begin_;  // ends; no two adjoin
  BySize by_size_;
  std::vector<Spare> spares_;  // at least one for each part in use, and room for those of all free ones
  std::size_t taken_ = 0;      // parts in use
};

}  // namespace shmem::exchange
