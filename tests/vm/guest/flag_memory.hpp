// SPDX-License-Identifier: Apache-2.0
// Memory of the guest for release flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/mmio.hpp"

namespace guest {

/// Locked pages, zero at first. Throws std::exception with the reason.
class FlagMemory {
 public:
  explicit FlagMemory(std::size_t size = 4096);
  FlagMemory(const FlagMemory&) = delete;
  FlagMemory& operator=(const FlagMemory&) = delete;
  ~FlagMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] gba::MmioWord<std::uint64_t> flag(std::size_t offset = 0) const {
    return gba::MmioRegion(bytes_).word<std::uint64_t>(offset);
  }
  /// The address of the first page in the guest's physical memory. Needs root.
  [[nodiscard]] std::uint64_t physical_address() const;

 private:
  std::span<std::byte> bytes_;
};

}  // namespace guest
