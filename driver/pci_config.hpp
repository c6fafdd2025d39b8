// SPDX-License-Identifier: Apache-2.0
// PCI config space: is it a GBA, and may it answer and write.
#pragma once

#include <cstdint>
#include <string>

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

/// The id that a GBA has: of uapi/gba_device.h, or if `override_text` (of $GBA_PCI_ID) is not null, that. Fails with
/// invalid_argument if the text is not of the form "vvvv:dddd".
Result<PciId> expected_pci_id(const char* override_text);

/// A function's config space. A view of the backend, which outlives it.
class PciConfig {
 public:
  /// Fails with no_such_device if the device has another id than `expected`.
  static Result<PciConfig> open(Backend& backend, PciId expected);

  /// Lets the device answer in its memory regions.
  Result<void> enable_memory() { return set_command(kMemory); }
  /// Lets the device write to host memory and raise interrupts.
  Result<void> enable_bus_master() { return set_command(kBusMaster); }

 private:
  static constexpr std::uint16_t kMemory = 0x2;
  static constexpr std::uint16_t kBusMaster = 0x4;

  explicit PciConfig(Registers registers) : registers_(std::move(registers)) {}
  Result<void> set_command(std::uint16_t bits);

  Registers registers_;
};

}  // namespace gba
