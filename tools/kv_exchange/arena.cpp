// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_exchange/arena.hpp"

#include <algorithm>
#include <iterator>

namespace kv_exchange {

std::optional<std::size_t> Arena::allocate(std::size_t bytes) {
  if (bytes > size_) {
    return std::nullopt;
  }
  const std::size_t size = rounded(bytes);
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const auto& range) { return range.second >= size; });
  if (found == free_.end()) {
    return std::nullopt;
  }
  const auto [offset, has] = *found;
  free_.erase(found);
  if (has > size) {
    free_[offset + size] = has - size;
  }
  return offset;
}

void Arena::release(std::size_t offset, std::size_t bytes) {
  auto range = free_.emplace(offset, rounded(bytes)).first;
  if (const auto next = std::next(range); next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range != free_.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == range->first) {
      before->second += range->second;
      free_.erase(range);
    }
  }
}

}  // namespace kv_exchange
