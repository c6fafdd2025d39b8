// SPDX-License-Identifier: Apache-2.0
// Memory that the device may write to: the addresses at which the device sees it, and the limit on pinning it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "driver/backend.hpp"
#include "driver/process_hooks.hpp"
#include "driver/result.hpp"
#include "driver/system_calls.hpp"

namespace gba {

/// Hands out ranges of IOVA space, whole pages each. An address is used again as late as possible, so that a store that
/// was under way when its range was unmapped does not reach a new owner. Thread-safe.
class IovaSpace {
 public:
  static constexpr std::uint64_t kPage = 4096;

  /// The addresses first .. first + size - 1, in ranges that are multiples of `page`. REQUIRES: multiples of it,
  /// size > 0.
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

  ForkMutex mutex_;                              // guards what follows
  std::uint64_t next_;                           // where the search begins
  std::map<std::uint64_t, std::uint64_t> used_;  // start -> end
};

struct IovaWindow {
  std::uint64_t first;
  std::uint64_t size;
};

/// The addresses to use among those that the IOMMU can map: above 4 GiB if possible, because a PC has reserved
/// addresses below, and below 2^40, which each device can reach. Fails with not_enough_memory if there are none.
Result<IovaWindow> choose_window(const DmaLimits& limits);

/// The space of the addresses that choose_window() gives.
Result<std::shared_ptr<IovaSpace>> make_iova_space(const DmaLimits& limits);

/// What one device has pinned. Thread-safe.
class MemoryLock {
 public:
  explicit MemoryLock(SystemCalls& system) : system_(system) {}

  /// Counts `bytes` more. Fails with not_enough_memory if the limit does not let the kernel pin them. `tried` begins
  /// the text of the error.
  Result<void> reserve(std::uint64_t bytes, const std::string& tried);
  void release(std::uint64_t bytes);
  /// Why the kernel may have refused to pin `bytes` with ENOMEM, and how to fix it. `others`: whose memory the kernel
  /// adds to the device's.
  [[nodiscard]] std::string advice(std::uint64_t bytes, const std::string& others);

 private:
  [[nodiscard]] std::uint64_t limit() const;

  SystemCalls& system_;
  ForkMutex mutex_;           // guards what follows
  std::uint64_t pinned_ = 0;  // bytes
};

}  // namespace gba
