// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/pci_functions.hpp"

extern "C" {  // the header does not say so itself
#include <pci/pci.h>
}

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "driver/tool/sysfs.hpp"
#include "uapi/gba_device.h"

namespace tool {

namespace {

struct PciId {
  std::uint16_t vendor;
  std::uint16_t device;
};

struct CleanUp {
  void operator()(pci_access* access) const { ::pci_cleanup(access); }
};
using Access = std::unique_ptr<pci_access, CleanUp>;

/// Four hexadecimal digits.
bool parse_half(std::string_view text, std::uint16_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return text.size() == 4 && error == std::errc{} && end == text.data() + text.size();
}

Result<std::vector<PciId>> wanted_ids() {
  const char* const variable = std::getenv("GBA_PCI_ID");
  if (variable == nullptr) {
    return std::vector<PciId>{{GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID}, {GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID_SWITCH}};
  }
  const std::string_view text = variable;
  PciId id{};
  if (text.size() == 9 && text[4] == ':' && parse_half(text.substr(0, 4), id.vendor) &&
      parse_half(text.substr(5), id.device)) {
    return std::vector<PciId>{id};
  }
  return tl::make_unexpected(
      Failure{-EINVAL, "gba: GBA_PCI_ID is \"" + std::string(text) + "\", not of the form vvvv:dddd (hexadecimal)"});
}

/// libpci calls it for what it cannot go on from, and must not be returned to.
__attribute__((noreturn)) void fail_in_libpci(char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("gba: cannot look for PCI functions: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::exit(kFailed);
}

/// A function that goes while it is looked at is no concern of a person.
void ignore(char* /*format*/, ...) {}

Access make_access(std::string folder) {
  Access access(::pci_alloc());
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  access->error = fail_in_libpci;
  access->warning = ignore;
  std::string parameter = "sysfs.path";
  ::pci_set_param(access.get(), parameter.data(), folder.data());
  ::pci_init(access.get());
  return access;
}

/// The symbolic link in the folder of device nodes that leads to `node`, of those that udev makes.
std::string name_of(const std::string& node) {
  for (const auto& name : names_in(dev_path(""))) {
    std::string path = dev_path(name);
    if (name.starts_with("gba") && is_same(path, node)) return path;
  }
  return "";
}

/// The character device of the function itself; empty if the kernel has none or there is no iommufd to go with it.
std::string own_node(const std::string& address) {
  const std::string folder = sys_path("bus/pci/devices/" + address + "/vfio-dev/");
  for (const auto& name : names_in(folder)) {
    const std::string node = dev_path("vfio/devices/" + name);
    // Linux has had the folder since 6.1; only where there is a character device its number is in it.
    if (exists(folder + name + "/dev") && exists(node) && exists(dev_path("iommu"))) return node;
  }
  return "";
}

void find_node(PciFunction& function) {
  function.device_node = own_node(function.address);
  function.by_iommufd = !function.device_node.empty();
  if (!function.by_iommufd && !function.iommu_group.empty()) function.device_node = group_node(function);
  if (exists(function.device_node)) function.name = name_of(function.device_node);
}

PciFunction describe(pci_dev& dev) {
  std::array<char, 32> address{};
  std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.%d", static_cast<unsigned>(dev.domain),
                unsigned{dev.bus}, unsigned{dev.dev}, int{dev.func});
  ::pci_fill_info(&dev, PCI_FILL_NUMA_NODE);
  PciFunction function{.address = address.data(), .vendor = dev.vendor_id, .device = dev.device_id};
  function.numa_node = dev.numa_node;
  const std::string folder = sys_path("bus/pci/devices/" + function.address);
  function.driver = link_name(folder + "/driver");
  function.iommu_group = link_name(folder + "/iommu_group");
  find_node(function);
  return function;
}

}  // namespace

std::string group_node(const PciFunction& function) {
  return dev_path("vfio/" + function.iommu_group);
}

Result<std::vector<PciFunction>> find_functions() {
  const auto ids = wanted_ids();
  if (!ids) return tl::make_unexpected(ids.error());
  std::vector<PciFunction> functions;
  const std::string folder = sys_path("bus/pci");
  if (!exists(folder + "/devices")) return functions;  // a machine without PCI
  const Access access = make_access(folder);
  ::pci_scan_bus(access.get());
  for (pci_dev* dev = access->devices; dev != nullptr; dev = dev->next) {
    ::pci_fill_info(dev, PCI_FILL_IDENT);
    const bool wanted = std::any_of(ids->begin(), ids->end(), [&](const PciId& id) {
      return id.vendor == dev->vendor_id && id.device == dev->device_id;
    });
    if (wanted) functions.push_back(describe(*dev));
  }
  std::sort(functions.begin(), functions.end(),
            [](const PciFunction& a, const PciFunction& b) { return a.address < b.address; });
  return functions;
}

}  // namespace tool
