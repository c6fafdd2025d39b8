// SPDX-License-Identifier: Apache-2.0
// Copies that are shared among cores: stretches of memory, each in every plane of the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/operator/cache.hpp"

namespace shmem::kv {

class CopyList {
 public:
  /// A single plane: only the stretches themselves.
  CopyList() : shifts_{0} {}
  /// Stretches are added by their addresses in plane 0. Source and destination have their planes at the same distances
  /// as `cache`.
  CopyList(const Layout& layout, const CachePlace& cache) {
    shifts_.reserve(layout.planes);
    for (std::size_t plane = 0; plane < layout.planes; ++plane) {
      shifts_.push_back(layout.plane(cache, plane) - cache.k);
    }
  }

  /// Adding up to this many stretches takes no memory then.
  void reserve(std::size_t stretches) {
    stretches_.reserve(stretches);
    ends_.reserve(stretches);
  }
  void clear() {
    stretches_.clear();
    ends_.clear();
  }

  /// Extends the last stretch if source and destination continue it.
  void add(std::byte* to, const std::byte* from, std::size_t size);

  // The bytes of one plane, and of all planes.
  [[nodiscard]] std::size_t plane_bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] std::size_t bytes() const { return plane_bytes() * shifts_.size(); }

  /// Calls copy(to, from, size) for the pieces of share `index` of `count`. Shares differ by at most a cache line.
  template <typename Copy>
  void share(int index, int count, Copy&& copy) const;

 private:
  struct Stretch {
    std::byte* to;
    const std::byte* from;
  };
  /// Where share `index` begins, in bytes of all planes one after the other.
  [[nodiscard]] std::size_t cut(int index, int count) const;

  std::vector<std::ptrdiff_t> shifts_;  // by plane: its distance from plane 0
  std::vector<Stretch> stretches_;
  std::vector<std::size_t> ends_;  // by stretch: in bytes from the begin of the first
};

inline void CopyList::add(std::byte* to, const std::byte* from, std::size_t size) {
  const std::size_t begin = plane_bytes();
  if (!stretches_.empty()) {
    const std::size_t last = begin - (ends_.size() > 1 ? ends_[ends_.size() - 2] : 0);
    if (stretches_.back().to + last == to && stretches_.back().from + last == from) {
      ends_.back() += size;
      return;
    }
  }
  stretches_.push_back({to, from});
  ends_.push_back(begin + size);
}

inline std::size_t CopyList::cut(int index, int count) const {
  constexpr std::size_t kLine = 64;
  const std::size_t all = bytes();
  if (index == count) {
    return all;
  }
  // Not all * index, which may overflow.
  const auto parts = static_cast<std::size_t>(count);
  const auto part = static_cast<std::size_t>(index);
  return (all / parts * part + all % parts * part / parts) / kLine * kLine;
}

template <typename Copy>
void CopyList::share(int index, int count, Copy&& copy) const {
  std::size_t begin = cut(index, count);
  const std::size_t end = cut(index + 1, count);
  const std::size_t each = plane_bytes();
  if (begin == end || each == 0) {
    return;
  }
  std::size_t plane = begin / each;
  auto stretch = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin % each) - ends_.begin());
  while (begin < end) {
    const std::size_t first = stretch == 0 ? 0 : ends_[stretch - 1];
    const std::size_t offset = begin - plane * each - first;
    const std::size_t size = std::min(ends_[stretch] - first - offset, end - begin);
    const auto shift = shifts_[plane] + static_cast<std::ptrdiff_t>(offset);
    copy(stretches_[stretch].to + shift, stretches_[stretch].from + shift, size);
    begin += size;
    if (++stretch == ends_.size()) {
      stretch = 0;
      ++plane;
    }
  }
}

}  // namespace shmem::kv
