// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/bug_report.hpp"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "driver/tool/check.hpp"
#include "driver/tool/group_view.hpp"
#include "driver/tool/info.hpp"
#include "driver/tool/register_reading.hpp"
#include "driver/tool/system.hpp"

namespace tool {

void BugReport::add(const std::string& title, const std::string& text) {
  if (!text.empty()) {
    sections_.push_back({title, text});
  }
}

void BugReport::could_not_read(const std::string& what, const std::string& why) {
  not_read_.push_back(fmt::format("{}: {}", what, why));
}

namespace {

std::string or_dash(const std::optional<std::string>& text) {
  return text.value_or("").empty() ? "-" : *text;
}

/// "16.0 GT/s PCIe x8 of 16".
std::string link_of(const std::string& folder) {
  return fmt::format("link {} x{} (up to {} x{})", or_dash(first_line(folder + "/current_link_speed")),
                     or_dash(first_line(folder + "/current_link_width")),
                     or_dash(first_line(folder + "/max_link_speed")), or_dash(first_line(folder + "/max_link_width")));
}

void add_functions(BugReport& report) {
  const auto functions = find_functions();
  if (!functions) {
    return report.could_not_read("PCI functions", functions.error().text);
  }
  std::string text;
  for (const auto& function : *functions) {
    const std::string folder = sys_path("bus/pci/devices/" + function.address);
    text += fmt::format("{} {} driver {} IOMMU group {} NUMA node {} node {} revision {} {}\n", function.address,
                        pci_id(function.vendor, function.device), or_dash(function.driver),
                        or_dash(function.iommu_group), function.numa_node, or_dash(function.device_node),
                        or_dash(first_line(folder + "/revision")), link_of(folder));
  }
  report.add("GBAs that are plugged in", text.empty() ? "none\n" : text);
}

/// Registers are read through a port of this process only.
void add_registers(BugReport& report, const std::string& path) {
  const auto device = open_device(path, GBA_OPEN_FATAL);
  if (!device) {
    return report.could_not_read("registers", device.error().text);
  }
  const auto info = info_of(device->get());
  const auto blocks = info ? read_blocks(device->get(), *info, {}) : Result<std::vector<Block>>(info.error());
  if (!blocks) {
    return report.could_not_read("registers", blocks.error().text);
  }
  for (const auto& block : *blocks) {
    Block shown{.name = block.name, .registers = {}};
    for (const auto& reading : block.registers) {
      if (reading.spec->name != "CMD_RESULT") {  // the key of a group may be in it
        shown.registers.push_back(reading);
      }
    }
    report.add("registers: " + block.name, to_text(shown));
  }
}

void add_look(BugReport& report, const std::string& path) {
  auto looker = Looker::open(path, GBA_OPEN_FATAL);
  if (!looker) {
    return report.could_not_read("device and groups", looker.error().text);
  }
  const auto look = look_at(*looker);
  if (!look) {
    return report.could_not_read("device and groups", look.error().text);
  }
  report.add("device", facts_text(*looker, look->look));
  const std::string groups = to_text(compare(*look, *look), std::time(nullptr));
  report.add("groups", groups.empty() ? "none is in use\n" : groups);
}

}  // namespace

void add_device(BugReport& report, const std::string& device) {
  add_functions(report);
  const auto target = find_target(device);
  if (!target) {
    return report.could_not_read("device", target.error().text);
  }
  std::string findings;
  for (const auto& finding : check_device(*target)) {
    findings += to_text(finding);
  }
  report.add("check", findings);
  if (target->kind == Target::Kind::kNothing) {
    return report.could_not_read("device", target->problem);
  }
  add_look(report, target->path);
  add_registers(report, target->path);
}

}  // namespace tool
