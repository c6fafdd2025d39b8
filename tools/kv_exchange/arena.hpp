// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace kv_exchange {

/// Divides memory into blocks: the first free range that is large enough. Offsets are multiples of 64.
class Arena {
 public:
  explicit Arena(std::size_t size) : size_(size / kAlignment * kAlignment) { free_[0] = size_; }

  /// `bytes` can be any number, as another member says it.
  std::optional<std::size_t> allocate(std::size_t bytes);
  /// `bytes` as they were allocated.
  void release(std::size_t offset, std::size_t bytes);

 private:
  static constexpr std::size_t kAlignment = 64;
  /// REQUIRES: bytes <= size_, so that the sum does not overflow.
  static std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  std::size_t size_;
  std::map<std::size_t, std::size_t> free_;  // size by offset; no two adjoin
};

}  // namespace kv_exchange
