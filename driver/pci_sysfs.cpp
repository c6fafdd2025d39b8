// SPDX-License-Identifier: Apache-2.0
#include "driver/pci_sysfs.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace gba {

namespace {

namespace fs = std::filesystem;

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

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "0x1eaf", as sysfs writes ids.
std::optional<std::uint16_t> id_in(const std::string& path) {
  const std::string text = first_line(path);
  std::uint16_t value = 0;
  if (!text.starts_with("0x")) return std::nullopt;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + 2, last, value, 16);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
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

std::optional<PciId> PciSysfs::id(const std::string& address) const {
  const auto vendor = id_in(function(address) + "/vendor");
  const auto device = id_in(function(address) + "/device");
  if (!vendor || !device) return std::nullopt;
  return PciId{.vendor = *vendor, .device = *device};
}

std::string PciSysfs::driver(const std::string& address) const {
  return link_name(function(address) + "/driver");
}

int PciSysfs::numa_node(const std::string& address) const {
  const std::string text = first_line(function(address) + "/numa_node");
  int node = -1;
  std::from_chars(text.data(), text.data() + text.size(), node);
  return node;
}

std::string PciSysfs::iommu_group(const std::string& address) const {
  return link_name(function(address) + "/iommu_group");
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
    // Since Linux 6.1 there is a folder; the number of a character device is in it only where there is one.
    if (fs::exists(folder + "/" + name + "/dev", error)) return name;
  }
  return "";
}

PciSysfs::CharacterDevice PciSysfs::character_device(dev_t number) const {
  const std::string path =
      root_ + "/dev/char/" + std::to_string(::major(number)) + ":" + std::to_string(::minor(number));
  return {.subsystem = link_name(path + "/subsystem"), .name = real_name(path), .parent = real_name(path + "/device")};
}

std::string PciSysfs::in_the_way_of(const std::string& address) const {
  std::string text;
  for (const std::string& other : group_functions(iommu_group(address))) {
    const std::string bound = driver(other);
    if (other == address || is_harmless(bound)) continue;
    text += (text.empty() ? "" : ", ") + other + " (driver " + bound + ")";
  }
  return text;
}

}  // namespace gba
