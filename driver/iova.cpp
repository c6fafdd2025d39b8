// SPDX-License-Identifier: Apache-2.0
#include "driver/iova.hpp"

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
  const std::uint64_t whole = (size + kPage - 1) / kPage * kPage;
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

void IovaSpace::release(std::uint64_t iova) {
  const std::lock_guard lock(mutex_);
  used_.erase(iova);
}

}  // namespace gba
