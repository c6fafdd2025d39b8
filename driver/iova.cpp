// SPDX-License-Identifier: Apache-2.0
#include "driver/iova.hpp"

#include <algorithm>
#include <string>

namespace gba {

std::uint64_t IovaSpace::find(std::uint64_t from, std::uint64_t to, std::uint64_t size) const {
  auto range = used_.upper_bound(from);
  if (range != used_.begin()) {
    const auto before = std::prev(range);
    if (before->second > from) from = before->second;
  }
  while (from < to && to - from >= size) {
    if (range == used_.end() || range->first - from >= size) return from;
    from = range->second;
    ++range;
  }
  return to;
}

Result<std::uint64_t> IovaSpace::allocate(std::uint64_t size) {
  const std::uint64_t whole = (size + page_ - 1) / page_ * page_;
  const std::lock_guard lock(mutex_);
  std::uint64_t found = find(next_, end_, whole);
  if (found == end_) found = find(first_, end_, whole);
  if (found == end_ || whole < size) {
    return fail(std::errc::not_enough_memory, "gba: no free range of " + std::to_string(size) + " bytes in IOVA space");
  }
  used_.emplace(found, found + whole);
  next_ = found + whole;
  return found;
}

Result<IovaWindow> choose_window(const DmaLimits& limits) {
  constexpr std::uint64_t kAboveReserved = UINT64_C(1) << 32;
  constexpr std::uint64_t kEnough = UINT64_C(1) << 37;
  const std::uint64_t page = limits.page;
  // Above 4 GiB first; page 0 is left out, because address 0 stands for "none" in many a place.
  for (const std::uint64_t least : {kAboveReserved, page}) {
    for (const IovaRange& range : limits.ranges) {
      const std::uint64_t wanted = std::max(range.first, least);
      const std::uint64_t first = wanted + (page - wanted % page) % page;
      if (first < wanted || first > range.last || range.last - first < page - 1) continue;
      const std::uint64_t rest = range.last - first;  // one less than its size, which may be 2^64
      return IovaWindow{.first = first, .size = (std::min(rest, kEnough - 1) + 1) / page * page};
    }
  }
  return fail(std::errc::not_enough_memory, "gba: the IOMMU can map no address for the device");
}

void IovaSpace::release(std::uint64_t iova) {
  const std::lock_guard lock(mutex_);
  used_.erase(iova);
}

}  // namespace gba
