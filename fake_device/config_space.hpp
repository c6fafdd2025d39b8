// SPDX-License-Identifier: Apache-2.0
// PCI config space of one function: header, BARs, MSI-X capability.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uapi/gba_device.h"

namespace fake_device {

/// Used by one thread. Ranges are within GBA_CONFIG_SIZE.
class ConfigSpace {
 public:
  ConfigSpace(std::uint16_t vendor, std::uint16_t device, unsigned msix_vectors);

  void read(std::size_t offset, std::span<std::byte> out) const;
  /// Read-only bits keep their value. True: a function level reset was asked for; config space itself keeps what it
  /// holds, as it does on a reset through VFIO.
  bool write(std::size_t offset, std::span<const std::byte> data);

  /// COMMAND.MEM: the BARs answer.
  [[nodiscard]] bool memory_enabled() const;
  /// COMMAND.MASTER: the function may write memory and raise interrupts.
  [[nodiscard]] bool bus_master() const;

 private:
  void put(std::size_t offset, unsigned size, std::uint64_t value);
  void put_writable(std::size_t offset, unsigned size, std::uint64_t mask);
  void add_bar(unsigned index, std::uint64_t size);
  void add_msix(unsigned vectors);
  void add_express();
  [[nodiscard]] std::uint16_t command() const;

  std::array<std::byte, GBA_CONFIG_SIZE> bytes_{};
  std::array<std::byte, GBA_CONFIG_SIZE> writable_{};
};

}  // namespace fake_device
