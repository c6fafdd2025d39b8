// SPDX-License-Identifier: Apache-2.0
#include "fake_device/config_space.hpp"

#include <linux/pci_regs.h>

#include <algorithm>

#include "uapi/gba_regs.h"

namespace fake_device {
namespace {

constexpr unsigned kMsixCapability = 0x40;
constexpr unsigned kExpressCapability = 0x60;
constexpr unsigned kExpressVersion = 2;
// The high byte of Device Control, and in it the bit that starts a function level reset.
constexpr std::size_t kResetByte = kExpressCapability + PCI_EXP_DEVCTL + 1;
constexpr std::byte kResetBit{PCI_EXP_DEVCTL_BCR_FLR >> 8};
constexpr std::uint16_t kCommandBits = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE;

std::byte byte_of(std::uint64_t value, unsigned index) {
  return static_cast<std::byte>(value >> (8 * index));
}

}  // namespace

ConfigSpace::ConfigSpace(std::uint16_t vendor, std::uint16_t device, unsigned msix_vectors) {
  put(PCI_VENDOR_ID, 2, vendor);
  put(PCI_DEVICE_ID, 2, device);
  put(PCI_COMMAND, 2, PCI_COMMAND_MEMORY);  // as VFIO leaves a function that it opens: uapi rule 2
  put_writable(PCI_COMMAND, 2, kCommandBits);
  put(PCI_STATUS, 2, PCI_STATUS_CAP_LIST);
  put(PCI_REVISION_ID, 1, GBA_VERSION_MAJOR);
  put(PCI_CLASS_PROG, 1, GBA_PCI_CLASS & 0xff);
  put(PCI_CLASS_DEVICE, 2, GBA_PCI_CLASS >> 8);
  put_writable(PCI_CACHE_LINE_SIZE, 1, 0xff);
  put_writable(PCI_LATENCY_TIMER, 1, 0xff);
  put_writable(PCI_INTERRUPT_LINE, 1, 0xff);
  put(PCI_SUBSYSTEM_VENDOR_ID, 2, vendor);
  put(PCI_SUBSYSTEM_ID, 2, device);
  add_bar(GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  add_bar(GBA_REGION_DOORBELLS, GBA_BAR2_SIZE);
  add_bar(GBA_REGION_FLAGS, GBA_BAR4_SIZE);
  add_msix(msix_vectors);
  add_express();
}

// A 64-bit BAR takes two places. Its size is what the address bits that cannot be written say.
void ConfigSpace::add_bar(unsigned index, std::uint64_t size) {
  const std::size_t offset = PCI_BASE_ADDRESS_0 + std::size_t{4} * index;
  put(offset, 4, PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64);
  put_writable(offset, 8, ~(size - 1));
}

void ConfigSpace::add_msix(unsigned vectors) {
  put(PCI_CAPABILITY_LIST, 1, kMsixCapability);
  put(kMsixCapability + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_MSIX);
  put(kMsixCapability + PCI_CAP_LIST_NEXT, 1, kExpressCapability);
  put(kMsixCapability + PCI_MSIX_FLAGS, 2, vectors - 1);
  put_writable(kMsixCapability + PCI_MSIX_FLAGS, 2, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
  put(kMsixCapability + PCI_MSIX_TABLE, 4, GBA_MSIX_TABLE_OFFSET | GBA_REGION_CONTROL);
  put(kMsixCapability + PCI_MSIX_PBA, 4, GBA_MSIX_PBA_OFFSET | GBA_REGION_CONTROL);
}

// An endpoint that can be reset by itself: without this a kernel hands it to no user space that wants a clean device.
void ConfigSpace::add_express() {
  constexpr unsigned kLink = PCI_EXP_LNKCAP_SLS_16_0GB | 16U << 4;  // 16 GT/s, 16 lanes
  const auto at = [](unsigned offset) { return std::size_t{kExpressCapability} + offset; };
  put(at(PCI_CAP_LIST_ID), 1, PCI_CAP_ID_EXP);
  put(at(PCI_EXP_FLAGS), 2, kExpressVersion | PCI_EXP_TYPE_ENDPOINT << 4);
  put(at(PCI_EXP_DEVCAP), 4, PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR);
  // Uapi rule 20: a device that sends nothing with these attributes has no bits that allow them.
  constexpr unsigned kFixed = PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_BCR_FLR;
  put(at(PCI_EXP_DEVCTL), 2, PCI_EXP_DEVCTL_READRQ_512B);
  put_writable(at(PCI_EXP_DEVCTL), 2, 0xffffU & ~kFixed);
  put(at(PCI_EXP_LNKCAP), 4, kLink);
  put(at(PCI_EXP_LNKSTA), 2, kLink);
}

void ConfigSpace::put(std::size_t offset, unsigned size, std::uint64_t value) {
  for (unsigned index = 0; index < size; ++index) {
    bytes_[offset + index] = byte_of(value, index);
  }
}

void ConfigSpace::put_writable(std::size_t offset, unsigned size, std::uint64_t mask) {
  for (unsigned index = 0; index < size; ++index) {
    writable_[offset + index] = byte_of(mask, index);
  }
}

void ConfigSpace::read(std::size_t offset, std::span<std::byte> out) const {
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
}

bool ConfigSpace::write(std::size_t offset, std::span<const std::byte> data) {
  for (std::size_t index = 0; index < data.size(); ++index) {
    auto& byte = bytes_[offset + index];
    const auto mask = writable_[offset + index];
    byte = (byte & ~mask) | (data[index] & mask);
  }
  const bool hits_reset = offset <= kResetByte && kResetByte - offset < data.size();
  return hits_reset && (data[kResetByte - offset] & kResetBit) != std::byte{0};
}

std::uint16_t ConfigSpace::command() const {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes_[PCI_COMMAND]) |
                                    std::to_integer<unsigned>(bytes_[PCI_COMMAND + 1]) << 8);
}

bool ConfigSpace::memory_enabled() const {
  return (command() & PCI_COMMAND_MEMORY) != 0;
}

bool ConfigSpace::bus_master() const {
  return (command() & PCI_COMMAND_MASTER) != 0;
}

}  // namespace fake_device
