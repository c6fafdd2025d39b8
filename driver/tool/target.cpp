// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/target.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <optional>
#include <regex>
#include <string_view>

#include "driver/tool/sysfs.hpp"

namespace tool {

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
  if (named.starts_with(kVfioUserPrefix)) return named.substr(kVfioUserPrefix.size());
  return named.starts_with('@') || is_socket(named) ? named : "";
}

std::string chosen(const std::string& named) {
  if (!named.empty()) return named;
  const char* const variable = std::getenv("GBA_DEVICE");
  return variable == nullptr ? "" : variable;
}

Target of(const PciFunction& function, const std::string& path) {
  return {.kind = Target::Kind::kFunction, .path = path, .function = function};
}

/// The function that is opened by `path`, its node under whatever name.
std::optional<PciFunction> function_behind(const std::string& path, const std::vector<PciFunction>& functions) {
  for (PciFunction function : functions) {
    if (is_same(path, function.device_node)) return function;
    if (function.iommu_group.empty() || !is_same(path, group_node(function))) continue;
    function.device_node = group_node(function);
    function.by_iommufd = false;
    return function;
  }
  return std::nullopt;
}

Target without_name(const std::vector<PciFunction>& functions) {
  const std::string usual = dev_path("gba0");
  if (is_socket(usual)) return {.kind = Target::Kind::kSocket, .path = usual, .socket = usual};
  if (const auto function = function_behind(usual, functions)) return of(*function, usual);
  if (!functions.empty()) return of(functions.front(), functions.front().address);
  return {.problem = "no GBA is plugged in, and GBA_DEVICE names none",
          .mend =
              "plug one in, or without hardware: gba-fake-device --socket /tmp/gba.sock & export "
              "GBA_DEVICE=vfio-user:/tmp/gba.sock"};
}

Target with_address(const std::string& address, const std::vector<PciFunction>& functions) {
  for (const auto& function : functions) {
    if (function.address == address) return of(function, address);
  }
  if (!exists(sys_path("bus/pci/devices/" + address))) {
    return {.path = address, .problem = "there is no PCI function " + address, .mend = "gba list"};
  }
  return {.path = address,
          .problem = address + " is no GBA: it has another PCI id",
          .mend = "GBA_PCI_ID=vvvv:dddd, if it is one all the same"};
}

}  // namespace

Result<Target> find_target(const std::string& named) {
  const std::string path = chosen(named);
  const std::string socket = socket_of(path);
  if (!socket.empty()) return Target{.kind = Target::Kind::kSocket, .path = path, .socket = socket};
  const auto functions = find_functions();
  if (!functions) return tl::make_unexpected(functions.error());
  if (path.empty()) return without_name(*functions);
  if (is_pci_address(path)) return with_address(path, *functions);
  if (const auto function = function_behind(path, *functions)) return of(*function, path);
  if (!exists(path)) {
    return Target{.path = path,
                  .problem = "there is no " + path,
                  .mend = functions->empty() ? "gba list" : "gba check " + functions->front().address};
  }
  return Target{
      .path = path, .problem = path + " is neither a socket nor the device node of a GBA", .mend = "gba list"};
}

}  // namespace tool
