// SPDX-License-Identifier: Apache-2.0
// A page of the guest's memory for release flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/mmio.hpp"

namespace guest {

/// One locked page, zero at first. Throws std::exception with the reason.
class FlagPage {
 public:
  FlagPage();
  FlagPage(const FlagPage&) = delete;
  FlagPage& operator=(const FlagPage&) = delete;
  ~FlagPage();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] gba::MmioWord<std::uint64_t> flag() const { return gba::MmioRegion(bytes_).word<std::uint64_t>(0); }
  /// Where it is in the guest's physical memory. Needs root.
  [[nodiscard]] std::uint64_t physical_address() const;

 private:
  std::span<std::byte> bytes_;
};

}  // namespace guest
