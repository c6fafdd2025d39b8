// SPDX-License-Identifier: Apache-2.0
// gba list: the GBAs that are plugged in, and the one that GBA_DEVICE names.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/tool/system.hpp"
#include "driver/tool/target.hpp"

namespace tool {
namespace {

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json json_of(const PciFunction& function) {
  return {{"address", function.address},
          {"pci_id", pci_id(function.vendor, function.device)},
          {"driver", or_null(function.driver)},
          {"iommu_group", or_null(function.iommu_group)},
          {"device_node", or_null(exists(function.device_node) ? function.device_node : "")},
          {"name", or_null(function.name)},
          {"numa_node", function.numa_node < 0 ? Json() : Json(function.numa_node)}};
}

std::string to_text(const std::vector<PciFunction>& functions) {
  if (functions.empty()) {
    return "no GBA is plugged in\n";
  }
  std::vector<std::vector<std::string>> rows{
      {"ADDRESS", "PCI ID", "DRIVER", "IOMMU GROUP", "NUMA NODE", "DEVICE NODE"}};
  for (const auto& function : functions) {
    const std::string node = exists(function.device_node) ? function.device_node : "";
    rows.push_back({function.address, pci_id(function.vendor, function.device), or_dash(function.driver),
                    or_dash(function.iommu_group), function.numa_node < 0 ? "-" : std::to_string(function.numa_node),
                    function.name.empty() ? or_dash(node) : fmt::format("{} ({})", or_dash(node), function.name)});
  }
  return table(rows);
}

int list(const Invocation& invocation) {
  const auto functions = find_functions();
  if (!functions) {
    return report(invocation, functions.error());
  }
  const char* const named = std::getenv("GBA_DEVICE");
  const std::string variable = named == nullptr ? "" : named;
  if (!invocation.json) {
    print_text(to_text(*functions));
    print_text(variable.empty() ? "" : fmt::format("GBA_DEVICE names {}\n", variable));
    return kDone;
  }
  Json plugged_in = Json::array();
  for (const auto& function : *functions) {
    plugged_in.push_back(json_of(function));
  }
  print_json(Json{{"plugged_in", plugged_in}, {"GBA_DEVICE", or_null(variable)}});
  return kDone;
}

}  // namespace

void declare_list(CLI::App& app, Invocation& invocation) {
  declare(app, invocation, "list", "the GBAs that are plugged in, and the one that GBA_DEVICE names",
          [&invocation] { return list(invocation); });
}

}  // namespace tool
