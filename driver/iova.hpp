// SPDX-License-Identifier: Apache-2.0
// The addresses at which the device sees our memory.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver/result.hpp"

namespace gba {

/// Hands out ranges of IOVA space, whole pages each. An address is used again as late as possible, so that a store that
/// was under way when its range was unmapped meets no new owner. Thread-safe.
class IovaSpace {
 public:
  static constexpr std::uint64_t kPage = 4096;

  /// The addresses first .. first + size - 1. REQUIRES: multiples of kPage, size > 0.
  IovaSpace(std::uint64_t first, std::uint64_t size) : first_(first), end_(first + size), next_(first) {}

  /// `size` bytes, rounded up to pages. Fails with not_enough_memory. REQUIRES: size > 0.
  Result<std::uint64_t> allocate(std::uint64_t size);
  /// REQUIRES: `iova` came from allocate() and was not released since.
  void release(std::uint64_t iova);

 private:
  /// The first free range of `size` bytes in [from, to), or `to`.
  [[nodiscard]] std::uint64_t find(std::uint64_t from, std::uint64_t to, std::uint64_t size) const;

  const std::uint64_t first_;
  const std::uint64_t end_;

  std::mutex mutex_;                             // guards what follows
  std::uint64_t next_;                           // where the search begins
  std::map<std::uint64_t, std::uint64_t> used_;  // start -> end
};

}  // namespace gba
