// SPDX-License-Identifier: Apache-2.0
// PCI config space: is it a GBA, and may it answer and write.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/backend.hpp"
#include "driver/registers.hpp"

namespace gba {

struct PciId {
  std::uint16_t vendor;
  std::uint16_t device;
  friend bool operator==(const PciId&, const PciId&) = default;
};

/// "vvvv:dddd" in hexadecimal.
std::string to_text(PciId id);

/// The ids that a GBA may have: those of uapi/gba_device.h, or if `override_text` (of $GBA_PCI_ID) is not null, that
/// one alone. Fails with invalid_argument if the text is not of the form "vvvv:dddd".
Result<std::vector<PciId>> expected_pci_ids(const char* override_text);

/// A function's config space. A view of the backend, which outlives it.
class PciConfig {
 public:
  /// Fails with no_such_device if the device has none of the ids in `expected`.
  static Result<PciConfig> open(Backend& backend, std::span<const PciId> expected);

  [[nodiscard]] PciId id() const { return id_; }

  /// Lets the device answer in its memory regions.
  Result<void> enable_memory() { return set_command(kMemory); }
  /// Lets the device write to host memory and raise interrupts.
  Result<void> enable_bus_master() { return set_command(kBusMaster); }

 private:
  static constexpr std::uint16_t kMemory = 0x2;
  static constexpr std::uint16_t kBusMaster = 0x4;

  PciConfig(Registers registers, PciId id) : registers_(std::move(registers)), id_(id) {}
  Result<void> set_command(std::uint16_t bits);

  Registers registers_;
  PciId id_;
};

}  // namespace gba
