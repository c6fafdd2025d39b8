// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/target.hpp"

extern "C" {  // the header does not say so itself
#include <pci/pci.h>
}

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <string_view>

#include "base/number.hpp"
#include "driver/tool/system.hpp"
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
using PciAccess = std::unique_ptr<pci_access, CleanUp>;

/// Four hexadecimal digits.
bool parse_half(std::string_view text, std::uint16_t& value) {
  const auto number = base::hexadecimal_number<std::uint16_t>(text);
  value = number.value_or(value);
  return text.size() == 4 && number;
}

Result<std::vector<PciId>> wanted_ids() {
  const char* const variable = std::getenv("GBA_PCI_ID");
  if (variable == nullptr) {
    return std::vector<PciId>{{GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID},
                              {GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID_VF},
                              {GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID_SWITCH}};
  }
  const std::string_view text = variable;
  PciId id{};
  if (text.size() == 9 && text[4] == ':' && parse_half(text.substr(0, 4), id.vendor) &&
      parse_half(text.substr(5), id.device)) {
    return std::vector<PciId>{id};
  }
  return Failure{-EINVAL, fmt::format("gba: GBA_PCI_ID is \"{}\", not of the form vvvv:dddd (hexadecimal)", text),
                 kUsage};
}

/// libpci calls it for errors from which it cannot continue; it must not return.
__attribute__((noreturn)) void fail_in_libpci(char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("gba: cannot look for PCI functions: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::exit(kOther);
}

/// A function may disappear during the scan: no warning.
void ignore(char* /*format*/, ...) {}

PciAccess make_access(std::string folder) {
  PciAccess access(::pci_alloc());
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
    if (name.starts_with("gba") && is_same(path, node)) {
      return path;
    }
  }
  return "";
}

/// The character device of the function itself; empty if the kernel has none or there is no iommufd to go with it.
std::string own_node(const std::string& address) {
  const std::string folder = sys_path("bus/pci/devices/" + address + "/vfio-dev/");
  for (const auto& name : names_in(folder)) {
    std::string node = dev_path("vfio/devices/" + name);
    // Linux has had the folder since 6.1; the file `dev` is in it only if there is a character device.
    if (exists(folder + name + "/dev") && exists(node) && exists(dev_path("iommu"))) {
      return node;
    }
  }
  return "";
}

void find_node(PciFunction& function) {
  function.device_node = own_node(function.address);
  function.by_iommufd = !function.device_node.empty();
  if (!function.by_iommufd && !function.iommu_group.empty()) {
    function.device_node = group_node(function);
  }
  if (exists(function.device_node)) {
    function.name = name_of(function.device_node);
  }
}

PciFunction describe(pci_dev& dev) {
  const std::string address =
      fmt::format("{:04x}:{:02x}:{:02x}.{}", static_cast<unsigned>(dev.domain), dev.bus, dev.dev, dev.func);

  ::pci_fill_info(&dev, PCI_FILL_NUMA_NODE);
  PciFunction function{.address = address, .vendor = dev.vendor_id, .device = dev.device_id};
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
  if (!ids) {
    return ids.error();
  }
  std::vector<PciFunction> functions;
  const std::string folder = sys_path("bus/pci");
  if (!exists(folder + "/devices")) {
    return functions;  // a machine without PCI
  }
  const PciAccess access = make_access(folder);
  ::pci_scan_bus(access.get());
  for (pci_dev* dev = access->devices; dev != nullptr; dev = dev->next) {
    ::pci_fill_info(dev, PCI_FILL_IDENT);
    const bool wanted = std::any_of(ids->begin(), ids->end(), [&](const PciId& id) {
      return id.vendor == dev->vendor_id && id.device == dev->device_id;
    });
    if (wanted) {
      functions.push_back(describe(*dev));
    }
  }
  std::sort(functions.begin(), functions.end(),
            [](const PciFunction& a, const PciFunction& b) { return a.address < b.address; });
  return functions;
}

namespace {

constexpr std::string_view kVfioUserPrefix = "vfio-user:";

bool is_pci_address(const std::string& text) {
  static const std::regex form("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  return std::regex_match(text, form);
}

bool is_socket(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

std::string socket_of(const std::string& named) {
  if (named.starts_with(kVfioUserPrefix)) {
    return named.substr(kVfioUserPrefix.size());
  }
  return named.starts_with('@') || is_socket(named) ? named : "";
}

std::string chosen(const std::string& named) {
  if (!named.empty()) {
    return named;
  }
  const char* const variable = std::getenv("GBA_DEVICE");
  return variable == nullptr ? "" : variable;
}

Target of(const PciFunction& function, const std::string& path) {
  return {.kind = Target::Kind::kFunction, .path = path, .function = function};
}

/// The function that is opened by `path`, its node under whatever name.
std::optional<PciFunction> function_behind(const std::string& path, const std::vector<PciFunction>& functions) {
  for (PciFunction function : functions) {
    if (is_same(path, function.device_node)) {
      return function;
    }
    if (function.iommu_group.empty() || !is_same(path, group_node(function))) {
      continue;
    }
    function.device_node = group_node(function);
    function.by_iommufd = false;
    return function;
  }
  return std::nullopt;
}

/// If `path` is a link that leads to nothing, or to what the user may not see: the socket of a service may be either.
std::optional<Target> behind_broken_link(const std::string& path) {
  struct stat status {};
  std::error_code error;
  const auto socket = std::filesystem::read_symlink(path, error);
  if (error || ::stat(path.c_str(), &status) == 0) {
    return std::nullopt;
  }
  if (errno == EACCES) {
    return Target{.path = path,
                  .problem = fmt::format("{} leads to {}, which this user may not see", path, socket.string()),
                  .fix = "usermod -a -G gba USER (as root), then log in again"};
  }
  return Target{.path = path,
                .problem = fmt::format("{} leads to {}, which does not exist", path, socket.string()),
                .fix = "without hardware: systemctl start gba-fake-device"};
}

Target without_name(const std::vector<PciFunction>& functions) {
  const std::string usual = dev_path("gba0");
  if (is_socket(usual)) {
    return {.kind = Target::Kind::kSocket, .path = usual, .socket = usual};
  }
  if (const auto function = function_behind(usual, functions)) {
    return of(*function, usual);
  }
  if (!functions.empty()) {
    return of(functions.front(), functions.front().address);
  }
  if (const auto broken = behind_broken_link(usual)) {
    return *broken;
  }
  return {.problem = "no GBA is plugged in, and GBA_DEVICE names none",
          .fix =
              "plug one in, or without hardware: gba-fake-device --socket /tmp/gba.sock & export "
              "GBA_DEVICE=vfio-user:/tmp/gba.sock"};
}

Target with_address(const std::string& address, const std::vector<PciFunction>& functions) {
  for (const auto& function : functions) {
    if (function.address == address) {
      return of(function, address);
    }
  }
  if (!exists(sys_path("bus/pci/devices/" + address))) {
    return {.path = address, .problem = fmt::format("there is no PCI function {}", address), .fix = "gba list"};
  }
  return {.path = address,
          .problem = fmt::format("{} is not a GBA: it has another PCI id", address),
          .fix = "GBA_PCI_ID=vvvv:dddd, if it is one nevertheless"};
}

}  // namespace

Result<Target> find_target(const std::string& named) {
  const std::string path = chosen(named);
  const std::string socket = socket_of(path);
  if (!socket.empty()) {
    return Target{.kind = Target::Kind::kSocket, .path = path, .socket = socket};
  }
  const auto functions = find_functions();
  if (!functions) {
    return functions.error();
  }
  if (path.empty()) {
    return without_name(*functions);
  }
  if (is_pci_address(path)) {
    return with_address(path, *functions);
  }
  if (const auto function = function_behind(path, *functions)) {
    return of(*function, path);
  }
  if (auto broken = behind_broken_link(path)) {
    return *std::move(broken);
  }
  if (!exists(path)) {
    return Target{.path = path,
                  .problem = fmt::format("there is no {}", path),
                  .fix = functions->empty() ? "gba list" : fmt::format("gba check {}", functions->front().address)};
  }
  return Target{.path = path,
                .problem = fmt::format("{} is neither a socket nor the device node of a GBA", path),
                .fix = "gba list"};
}

}  // namespace tool
