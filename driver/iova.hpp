// SPDX-License-Identifier: Apache-2.0
// The addresses at which the device sees our memory.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver/backend.hpp"
#include "driver/result.hpp"

namespace gba {

/// Hands out ranges of IOVA space, whole pages each. An address is used again as late as possible, so that a store that
/// was under way when its range was unmapped meets no new owner. Thread-safe.
class IovaSpace {
 public:
  static constexpr std::uint64_t kPage = 4096;

  /// The addresses first .. first + size - 1, in ranges that are multiples of `page`. REQUIRES: multiples of it, size >
  /// 0.
  IovaSpace(std::uint64_t first, std::uint64_t size, std::uint64_t page = kPage)
      : first_(first), end_(first + size), page_(page), next_(first) {}

  /// `size` bytes, rounded up to pages. Fails with not_enough_memory. REQUIRES: size > 0.
  Result<std::uint64_t> allocate(std::uint64_t size);
  /// REQUIRES: `iova` came from allocate() and was not released since.
  void release(std::uint64_t iova);

 private:
  /// The first free range of `size` bytes in [from, to), or `to`.
  [[nodiscard]] std::uint64_t find(std::uint64_t from, std::uint64_t to, std::uint64_t size) const;

  const std::uint64_t first_;
  const std::uint64_t end_;
  const std::uint64_t page_;

  std::mutex mutex_;                             // guards what follows
  std::uint64_t next_;                           // where the search begins
  std::map<std::uint64_t, std::uint64_t> used_;  // start -> end
};

struct IovaWindow {
  std::uint64_t first;
  std::uint64_t size;
};

/// The addresses to use of those that the IOMMU can map: away from those below 4 GiB, where a PC has reserved ones, if
/// there are others. Fails with not_enough_memory where there are none.
Result<IovaWindow> choose_window(const DmaLimits& limits);

}  // namespace gba
