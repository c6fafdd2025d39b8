// SPDX-License-Identifier: Apache-2.0
#include "driver/pci_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "uapi/gba_device.h"

namespace gba {

namespace {

constexpr std::uint64_t kVendorOffset = 0x00;
constexpr std::uint64_t kDeviceOffset = 0x02;
constexpr std::uint64_t kCommandOffset = 0x04;
constexpr std::uint64_t kHeaderSize = 0x40;

bool parse_hex4(std::string_view text, std::uint16_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return text.size() == 4 && error == std::errc{} && end == text.data() + text.size();
}

std::string hex4(std::uint16_t value) {
  std::string text = "0000";
  for (std::size_t i = 0; i < text.size(); ++i) text[3 - i] = "0123456789abcdef"[(value >> (4 * i)) & 0xf];
  return text;
}

std::string any_of(std::span<const PciId> ids) {
  std::string text;
  for (const PciId id : ids) text += (text.empty() ? "" : " or ") + to_text(id);
  return text;
}

}  // namespace

std::string to_text(PciId id) {
  return hex4(id.vendor) + ":" + hex4(id.device);
}

Result<std::vector<PciId>> expected_pci_ids(const char* override_text) {
  if (override_text == nullptr) {
    return std::vector<PciId>{{.vendor = GBA_PCI_VENDOR_ID, .device = GBA_PCI_DEVICE_ID},
                              {.vendor = GBA_PCI_VENDOR_ID, .device = GBA_PCI_DEVICE_ID_SWITCH}};
  }
  const std::string_view text = override_text;
  PciId id{};
  if (text.size() != 9 || text[4] != ':' || !parse_hex4(text.substr(0, 4), id.vendor) ||
      !parse_hex4(text.substr(5), id.device)) {
    return fail(std::errc::invalid_argument,
                "gba: GBA_PCI_ID is \"" + std::string(text) + "\", not of the form vvvv:dddd (hexadecimal)");
  }
  return std::vector<PciId>{id};
}

Result<PciConfig> PciConfig::open(Backend& backend, std::span<const PciId> expected) {
  auto registers = Registers::open(backend, GBA_REGION_CONFIG, kHeaderSize);
  if (!registers) return tl::make_unexpected(registers.error());
  const auto vendor = registers->read<std::uint16_t>(kVendorOffset);
  if (!vendor) return tl::make_unexpected(vendor.error());
  const auto device = registers->read<std::uint16_t>(kDeviceOffset);
  if (!device) return tl::make_unexpected(device.error());
  const PciId id{.vendor = *vendor, .device = *device};
  if (std::find(expected.begin(), expected.end(), id) == expected.end()) {
    return fail(std::errc::no_such_device, "gba: " + backend.path() + " is not a GBA: its PCI id is " + to_text(id) +
                                               ", not " + any_of(expected) +
                                               " (GBA_PCI_ID=vvvv:dddd names another id)");
  }
  return PciConfig(*std::move(registers), id);
}

Result<void> PciConfig::set_command(std::uint16_t bits) {
  const auto command = registers_.read<std::uint16_t>(kCommandOffset);
  if (!command) return tl::make_unexpected(command.error());
  return registers_.write<std::uint16_t>(kCommandOffset, static_cast<std::uint16_t>(*command | bits));
}

}  // namespace gba
