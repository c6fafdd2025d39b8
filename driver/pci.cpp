// SPDX-License-Identifier: Apache-2.0
#include "driver/pci.hpp"

#include <fmt/ranges.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/folder.hpp"
#include "base/number.hpp"
#include "uapi/gba_device.h"

namespace gba {

namespace {

constexpr std::uint64_t kVendorOffset = 0x00;
constexpr std::uint64_t kDeviceOffset = 0x02;
constexpr std::uint64_t kCommandOffset = 0x04;
constexpr std::uint64_t kHeaderSize = 0x40;

bool parse_hex4(std::string_view text, std::uint16_t& value) {
  const auto number = base::hexadecimal_number<std::uint16_t>(text);
  value = number.value_or(value);
  return text.size() == 4 && number;
}

std::string any_of(std::span<const PciId> ids) {
  std::vector<std::string> texts;
  for (const PciId id : ids) {
    texts.push_back(to_text(id));
  }
  return fmt::format("{}", fmt::join(texts, " or "));
}

}  // namespace

std::string to_text(PciId id) {
  return fmt::format("{:04x}:{:04x}", id.vendor, id.device);
}

Result<std::vector<PciId>> expected_pci_ids(const char* override_text) {
  if (override_text == nullptr) {
    return std::vector<PciId>{{.vendor = GBA_PCI_VENDOR_ID, .device = GBA_PCI_DEVICE_ID},
                              {.vendor = GBA_PCI_VENDOR_ID, .device = GBA_PCI_DEVICE_ID_VF},
                              {.vendor = GBA_PCI_VENDOR_ID, .device = GBA_PCI_DEVICE_ID_SWITCH}};
  }
  const std::string_view text = override_text;
  PciId id{};
  if (text.size() != 9 || text[4] != ':' || !parse_hex4(text.substr(0, 4), id.vendor) ||
      !parse_hex4(text.substr(5), id.device)) {
    return fail(std::errc::invalid_argument,
                fmt::format("gba: GBA_PCI_ID is \"{}\", not of the form vvvv:dddd (hexadecimal)", text));
  }
  return std::vector<PciId>{id};
}

Result<PciConfig> PciConfig::open(Backend& backend, std::span<const PciId> expected) {
  auto registers = Registers::open(backend, GBA_REGION_CONFIG, kHeaderSize);
  if (!registers) {
    return registers.error();
  }
  const auto vendor = registers->read<std::uint16_t>(kVendorOffset);
  if (!vendor) {
    return vendor.error();
  }
  const auto device = registers->read<std::uint16_t>(kDeviceOffset);
  if (!device) {
    return device.error();
  }
  const PciId id{.vendor = *vendor, .device = *device};
  if (std::find(expected.begin(), expected.end(), id) == expected.end()) {
    return fail(std::errc::no_such_device,
                fmt::format("gba: {} is not a GBA: its PCI id is {}, not {} (GBA_PCI_ID=vvvv:dddd names another id)",
                            backend.path(), to_text(id), any_of(expected)));
  }
  return PciConfig(*std::move(registers), id);
}

Result<void> PciConfig::set_command(std::uint16_t bits) {
  const auto command = registers_.read<std::uint16_t>(kCommandOffset);
  if (!command) {
    return command.error();
  }
  return registers_.write<std::uint16_t>(kCommandOffset, static_cast<std::uint16_t>(*command | bits));
}

namespace {

namespace fs = std::filesystem;
using base::names_in;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The last name in what a symbolic link says.
std::string link_name(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path, error).filename().string();
}

/// The last name of what the path leads to.
std::string real_name(const std::string& path) {
  std::error_code error;
  return fs::canonical(path, error).filename().string();
}

/// "0x1eaf", as sysfs writes ids.
std::optional<std::uint16_t> id_in(const std::string& path) {
  const std::string text = first_line(path);
  return text.starts_with("0x") ? base::hexadecimal_number<std::uint16_t>(text.substr(2)) : std::nullopt;
}

/// Drivers that leave a group to VFIO.
bool is_harmless(std::string_view driver) {
  return driver.empty() || driver == "vfio-pci" || driver == "pci-stub" || driver == "pcieport";
}

}  // namespace

std::string PciSysfs::function(const std::string& address) const {
  return root_ + "/bus/pci/devices/" + address;
}

std::vector<std::string> PciSysfs::functions() const {
  return names_in(root_ + "/bus/pci/devices");
}

std::vector<std::string> PciSysfs::functions_of(const std::string& driver) const {
  std::vector<std::string> names = names_in(root_ + "/bus/pci/drivers/" + driver);
  std::erase_if(names,
                [](const std::string& name) { return name.find(':') == std::string::npos; });  // "bind", "module"
  return names;
}

std::optional<PciId> PciSysfs::id(const std::string& address) const {
  const auto vendor = this->vendor(address);
  const auto device = id_in(function(address) + "/device");
  if (!vendor || !device) {
    return std::nullopt;
  }
  return PciId{.vendor = *vendor, .device = *device};
}

std::optional<std::uint16_t> PciSysfs::vendor(const std::string& address) const {
  return id_in(function(address) + "/vendor");
}

std::string PciSysfs::driver(const std::string& address) const {
  return link_name(function(address) + "/driver");
}

int PciSysfs::numa_node(const std::string& address) const {
  return base::number<int>(first_line(function(address) + "/numa_node")).value_or(-1);
}

std::string PciSysfs::iommu_group(const std::string& address) const {
  return link_name(function(address) + "/iommu_group");
}

std::string PciSysfs::physical_function(const std::string& address) const {
  return link_name(function(address) + "/physfn");
}

bool PciSysfs::wants_vf_token(const std::string& address) const {
  const std::string physical = physical_function(address);
  if (!physical.empty()) {
    return driver(physical) == "vfio-pci";
  }
  const std::string most = first_line(function(address) + "/sriov_totalvfs");
  return !most.empty() && most != "0";
}

bool PciSysfs::no_iommu(const std::string& group) const {
  return first_line(root_ + "/kernel/iommu_groups/" + group + "/name") == "vfio-noiommu";
}

std::vector<std::string> PciSysfs::group_functions(const std::string& group) const {
  return names_in(root_ + "/kernel/iommu_groups/" + group + "/devices");
}

std::string PciSysfs::vfio_device(const std::string& address) const {
  const std::string folder = function(address) + "/vfio-dev";
  std::error_code error;
  for (const std::string& name : names_in(folder)) {
    // Linux has had the folder since 6.1; the file `dev` is in it only if there is a character device.
    if (fs::exists(fs::path(folder) / name / "dev", error)) {
      return name;
    }
  }
  return "";
}

PciSysfs::CharacterDevice PciSysfs::character_device(dev_t number) const {
  const std::string path = fmt::format("{}/dev/char/{}:{}", root_, ::major(number), ::minor(number));
  return {.subsystem = link_name(path + "/subsystem"), .name = real_name(path), .parent = real_name(path + "/device")};
}

std::string PciSysfs::in_the_way_of(const std::string& address) const {
  std::vector<std::string> others;
  for (const std::string& other : group_functions(iommu_group(address))) {
    const std::string bound = driver(other);
    if (other == address || is_harmless(bound)) {
      continue;
    }
    others.push_back(fmt::format("{} (driver {})", other, bound));
  }
  return fmt::format("{}", fmt::join(others, ", "));
}

}  // namespace gba
