// SPDX-License-Identifier: Apache-2.0
// gba info: the properties and counters of an open device.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "driver/tool/device.hpp"
#include "driver/tool/info.hpp"
#include "driver/tool/look.hpp"
#include "uapi/gba_regs.h"

namespace tool {
namespace {

struct Feature {
  std::uint64_t bit;
  const char* name;
  const char* text;
};

constexpr Feature kFeatures[] = {
    {GBA_CAPS_BAR_FLAGS, "bar_flags", "release flags can be in its own memory (BAR4)"},
    {GBA_CAPS_WAKEUP, "wakeup", "it is a process and may sleep"},
    {GBA_CAPS_NOTIFY, "notify", "an arrival may ask for an interrupt"},
    {GBA_CAPS_LINK_EVENTS, "link_events", "it reports changes of a link"},
    {GBA_CAPS_DEBUG, "debug", "faults can be injected"},
    {GBA_CAPS_GROUP_LIMIT, "group_limit", "it limits how many groups a port may have"},
};

std::string version_of(const gba_device_info& info) {
  return fmt::format("{}.{}", GBA_FIELD_GET(GBA_VERSION_MAJOR_FIELD, info.version),
                     GBA_FIELD_GET(GBA_VERSION_MINOR_FIELD, info.version));
}

Json facts_json(const Looker& looker, const Look& look) {
  const gba_device_info& info = look.info;
  Json features = Json::array();
  for (const auto& feature : kFeatures) {
    if ((info.features & feature.bit) != 0) {
      features.push_back(feature.name);
    }
  }
  return {{"device", info.path},
          {"seen_by", looker.seen_by() ? Json(*looker.seen_by()) : Json()},
          {"backend", info.backend},
          {"register_map", version_of(info)},
          {"port", info.port},
          {"condition", look.condition},
          {"groups", info.groups},
          {"group_limit", look.limit.most == 0 ? Json() : Json(look.limit.most)},
          {"groups_held", look.limit.most == 0 ? Json() : Json(look.limit.held)},
          {"members", info.members},
          {"is_process", info.is_process != 0},
          {"flags", info.flags == GBA_FLAGS_BAR ? "bar" : "dma"},
          {"capabilities", info.features},
          {"features", features},
          {"counters", to_json(look.counters)}};
}

}  // namespace

std::string facts_text(const Looker& looker, const Look& look) {
  const gba_device_info& info = look.info;
  std::vector<std::vector<std::string>> rows{
      {"device", info.path + looker.seen_by_text()},
      {"backend", info.backend},
      {"register map", fmt::format("version {}", version_of(info))},
      {"port", std::to_string(info.port)},
      {"condition", look.condition},
      {"groups", fmt::format("{}, of up to {} members", info.groups, info.members)}};
  if (look.limit.most != 0) {
    rows.push_back(
        {"limit", fmt::format("a port may have {} of them; this port has {}", look.limit.most, look.limit.held)});
  }
  rows.push_back({"flags", flag_place(info)});
  std::string label = "features";
  for (const auto& feature : kFeatures) {
    if ((info.features & feature.bit) != 0) {
      rows.push_back({std::exchange(label, ""), fmt::format("{}: {}", feature.name, feature.text)});
    }
  }
  label = "counters";
  const Json counted = to_json(look.counters);
  for (const auto& [name, value] : counted.items()) {
    rows.push_back({std::exchange(label, ""), fmt::format("{} {}", name, value.dump())});
  }
  return table(rows);
}

namespace {

int info(const Invocation& invocation) {
  auto looker = Looker::open(invocation.device, GBA_OPEN_FATAL);
  if (!looker) {
    return report(invocation, looker.error());
  }
  const auto look = looker->look();
  if (!look) {
    return report(invocation, look.error());
  }
  if (invocation.json) {
    print_json(facts_json(*looker, *look));
  } else {
    print_text(facts_text(*looker, *look));
  }
  return kDone;
}

}  // namespace

void declare_info(CLI::App& app, Invocation& invocation) {
  auto command = declare(app, invocation, "info", "the properties and counters of a device",
                         [&invocation] { return info(invocation); });
  take_device(command, invocation);
}

}  // namespace tool
