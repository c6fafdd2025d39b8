// SPDX-License-Identifier: Apache-2.0
#include "driver/discovery.hpp"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "driver/backend_vfio.hpp"
#include "driver/backend_vfio_user.hpp"
#include "driver/status_socket.hpp"

namespace gba {

namespace {

constexpr std::string_view kVfioUserPrefix = "vfio-user:";
constexpr std::string_view kNoIommuPrefix = "noiommu-";

Error no_such_path(const std::string& path, int error) {
  const std::string tried = fmt::format("gba: cannot open {}: ", path);
  if (error == EACCES) {
    return fail(std::errc::permission_denied,
                tried + "permission denied (is 70-gba.rules, package gba-udev, installed, and are you in group gba?)");
  }
  if (error == ENOENT || error == ENOTDIR) {
    return fail(std::errc::no_such_device,
                tried + "no such file (is there a GBA? GBA_DEVICE names another path, e.g. a fake device's socket)");
  }
  return fail_errno(error, fmt::format("gba: cannot open {}", path));
}

Error no_iommu(const std::string& tried) {
  return fail(std::errc::operation_not_supported,
              tried +
                  "it is in VFIO's no-IOMMU mode, where a device may write to all memory: refused. Turn the IOMMU on "
                  "(firmware setup; kernel parameter intel_iommu=on)");
}

Location vfio_user(const std::string& socket) {
  return {.way = Way::kVfioUser,
          .shown = std::string(kVfioUserPrefix) + socket,
          .socket = socket,
          .nodes = {},
          .key = key_of_socket(socket)};
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

/// "0000:3b:00.0": domain, bus, device, function.
bool is_pci_address(std::string_view text) {
  constexpr std::string_view kForm = "hhhh:hh:hh.h";
  // A domain may have more than four digits.
  while (text.size() > kForm.size() && std::string_view("0123456789abcdef").find(text[0]) != std::string_view::npos) {
    text.remove_prefix(1);
  }
  return text.size() == kForm.size() && std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
           return form == 'h' ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') : c == form;
         });
}

}  // namespace

Result<Location> DeviceFinder::find(const char* path) const {
  if (path != nullptr && *path != '\0') {
    return at(path);
  }
  const char* variable = std::getenv("GBA_DEVICE");
  if (variable != nullptr && *variable != '\0') {
    return at(variable);
  }
  const std::string usual = dev_ + "/gba0";
  return exists(usual) || errno != ENOENT ? at(usual) : first();
}

Result<Location> DeviceFinder::at(const std::string& path) const {
  if (path.starts_with('@')) {
    return vfio_user(path);
  }
  if (path.starts_with(kVfioUserPrefix)) {
    const std::string socket = path.substr(kVfioUserPrefix.size());
    if (!socket.empty()) {
      return vfio_user(socket);
    }
    return fail(std::errc::invalid_argument,
                fmt::format("gba: cannot open {}: the name of the socket is missing", path));
  }
  if (is_pci_address(path)) {
    return by_address(path);
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return no_such_path(path, errno);
  }
  if (S_ISSOCK(status.st_mode)) {
    return vfio_user(path);
  }
  if (S_ISCHR(status.st_mode)) {
    return character_device(path, status.st_rdev);
  }
  return fail(std::errc::invalid_argument, fmt::format("gba: cannot open {}: neither a device nor a socket", path));
}

Result<Location> DeviceFinder::first() const {
  // Prefer a function that can be opened.
  if (const auto bound = all(); !bound.empty()) {
    return by_address(bound.front());
  }
  const auto functions = sysfs_.functions();
  const auto found = std::ranges::find_if(functions, [this](const std::string& address) { return is_gba(address); });
  return found == functions.end() ? no_such_path(dev_ + "/gba0", ENOENT) : by_address(*found);
}

std::vector<std::string> DeviceFinder::all() const {
  auto found = sysfs_.functions_of("vfio-pci");
  std::erase_if(found, [this](const std::string& address) { return !is_gba(address); });
  return found;
}

// Each PE of a job may ask this about hundreds of functions: most answers take one file.
bool DeviceFinder::is_gba(const std::string& address) const {
  const auto vendor = sysfs_.vendor(address);
  if (std::ranges::none_of(ids_, [&](const PciId& id) { return id.vendor == vendor; })) {
    return false;
  }
  const auto id = sysfs_.id(address);
  return id && std::ranges::find(ids_, *id) != ids_.end();
}

Result<void> DeviceFinder::check(const std::string& address, const std::string& tried) const {
  const auto id = sysfs_.id(address);
  if (!id) {
    return fail(std::errc::no_such_device,
                fmt::format("{}there is no PCI function {} (lspci -D lists them)", tried, address));
  }
  if (!is_gba(address)) {
    return fail(std::errc::no_such_device,
                fmt::format("{}it is not a GBA: its PCI id is {} (GBA_PCI_ID=vvvv:dddd names another id)", tried,
                            to_text(*id)));
  }
  const std::string driver = sysfs_.driver(address);
  if (driver == "vfio-pci") {
    return {};
  }
  const std::string holder = driver.empty() ? "no driver has it" : fmt::format("driver {} has it", driver);
  const std::string unbind =
      driver.empty() ? "" : fmt::format("; echo {0} > /sys/bus/pci/devices/{0}/driver/unbind", address);
  return fail(
      std::errc::no_such_device,
      fmt::format(
          "{0}{1}, not vfio-pci. 70-gba.rules, package gba-udev, binds it; by hand, as root: modprobe vfio-pci; echo "
          "vfio-pci > /sys/bus/pci/devices/{2}/driver_override{3}; echo {2} > /sys/bus/pci/drivers_probe",
          tried, holder, address, unbind));
}

Result<Location> DeviceFinder::by_address(const std::string& address) const {
  const std::string tried = fmt::format("gba: cannot open {}: ", address);
  if (auto good = check(address, tried); !good) {
    return good.error();
  }
  const std::string group = sysfs_.iommu_group(address);
  if (group.empty()) {
    return fail(std::errc::operation_not_supported,
                tried +
                    "there is no IOMMU in front of it. Turn it on (firmware setup; kernel parameter "
                    "intel_iommu=on)");
  }
  if (sysfs_.no_iommu(group)) {
    return no_iommu(tried);
  }
  const std::string device = sysfs_.vfio_device(address);
  const std::string cdev = dev_ + "/vfio/devices/" + device;
  if (!device.empty() && exists(cdev) && exists(dev_ + "/iommu")) {
    return by_cdev(cdev, address);
  }
  return by_group_node(dev_ + "/vfio/" + group, address);
}

Result<Location> DeviceFinder::character_device(const std::string& path, dev_t number) const {
  const std::string tried = fmt::format("gba: cannot open {}: ", path);
  const auto found = sysfs_.character_device(number);
  if (found.subsystem == "vfio") {
    return by_group(path, found.name);
  }
  if (found.subsystem != "vfio-dev") {
    return fail(
        std::errc::no_such_device,
        fmt::format(
            "{}a character device, but not one of VFIO's (name the device by its PCI address, like 0000:3b:00.0)",
            tried));
  }
  if (found.name.starts_with(kNoIommuPrefix)) {
    return no_iommu(tried);
  }
  if (auto good = check(found.parent, tried); !good) {
    return good.error();
  }
  return by_cdev(path, found.parent);
}

Result<Location> DeviceFinder::by_group(const std::string& path, const std::string& group) const {
  const std::string tried = fmt::format("gba: cannot open {}: ", path);
  if (group.starts_with(kNoIommuPrefix)) {
    return no_iommu(tried);
  }
  std::vector<std::string> gbas;
  for (const std::string& address : sysfs_.group_functions(group)) {
    if (is_gba(address)) {
      gbas.push_back(address);
    }
  }
  if (gbas.empty()) {
    return fail(std::errc::no_such_device, fmt::format("{}there is no GBA in IOMMU group {}", tried, group));
  }
  if (gbas.size() > 1) {
    return fail(std::errc::invalid_argument, fmt::format("{}there are {} GBAs in IOMMU group {}: name one of them, {}",
                                                         tried, gbas.size(), group, fmt::join(gbas, " or ")));
  }
  if (auto good = check(gbas.front(), tried); !good) {
    return good.error();
  }
  return by_group_node(path, gbas.front());
}

VfToken DeviceFinder::token_for(const std::string& address) const {
  return sysfs_.wants_vf_token(address) ? token_ : VfToken{};
}

Location DeviceFinder::by_cdev(const std::string& node, const std::string& address) const {
  return {.way = Way::kVfioCdev,
          .shown = address,
          .socket = "",
          .nodes = {.device = node, .iommu = dev_ + "/iommu", .address = address, .token = token_for(address)},
          .key = key_of_function(address)};
}

Location DeviceFinder::by_group_node(const std::string& node, const std::string& address) const {
  return {.way = Way::kVfioGroup,
          .shown = address,
          .socket = "",
          .nodes = {.device = node, .iommu = dev_ + "/vfio/vfio", .address = address, .token = token_for(address)},
          .key = key_of_function(address)};
}

Result<Location> find_device(const char* path) {
  const auto ids = expected_pci_ids(std::getenv("GBA_PCI_ID"));
  if (!ids) {
    return ids.error();
  }
  auto token = vf_token(std::getenv("GBA_VF_TOKEN"));
  if (!token) {
    return token.error();
  }
  return DeviceFinder("/sys", "/dev", *ids, *std::move(token)).find(path);
}

Result<std::vector<std::string>> list_devices() {
  const auto ids = expected_pci_ids(std::getenv("GBA_PCI_ID"));
  if (!ids) {
    return ids.error();
  }
  return DeviceFinder("/sys", "/dev", *ids).all();
}

Result<std::unique_ptr<Backend>> open_backend(const Location& location, VfioContexts& contexts) {
  switch (location.way) {
    case Way::kVfioUser:
      break;
    case Way::kVfioGroup:
      return VfioGroupBackend::open(real_system_calls(), PciSysfs(), location.nodes, contexts);
    case Way::kVfioCdev:
      return VfioCdevBackend::open(real_system_calls(), PciSysfs(), location.nodes, contexts);
  }
  return VfioUserBackend::open(location.socket, location.shown);
}

}  // namespace gba
