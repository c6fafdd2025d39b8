// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/device.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "uapi/gba_regs.h"

namespace tool {

Result<DevicePointer> open_device(const std::string& path, std::uint32_t flags) {
  gba_device* device = nullptr;
  const gba_open_options options{.size = sizeof(options), .flags = flags};
  const int error = gba_open_with(path.empty() ? nullptr : path.c_str(), &options, &device);
  if (error != 0) {
    return failed(error, kCannotOpen);
  }
  return DevicePointer(device);
}

Result<gba_device_info> info_of(gba_device* device) {
  gba_device_info info{};
  if (const int error = gba_device_get_info(device, &info); error != 0) {
    return failed(error);
  }
  return info;
}

std::string flag_place(const gba_device_info& info) {
  return info.flags == GBA_FLAGS_BAR ? "in the device's memory" : "in host memory";
}

Result<gba_device_counters> counters_of(gba_device* device) {
  gba_device_counters counters{};
  if (const int error = gba_device_get_counters(device, &counters); error != 0) {
    return failed(error);
  }
  return counters;
}

Result<GroupLimit> group_limit_of(gba_device* device, const gba_device_info& info) {
  GroupLimit limit;
  if ((info.features & GBA_CAPS_GROUP_LIMIT) == 0) {
    return limit;
  }
  for (const auto& [offset, value] : {std::pair{std::uint64_t{GBA_REG_GROUP_LIMIT}, &limit.most},
                                      std::pair{std::uint64_t{GBA_REG_GROUPS_HELD}, &limit.held}}) {
    if (const int error = gba_device_read_register(device, offset, sizeof *value, value); error != 0) {
      return failed(error);
    }
  }
  return limit;
}

Json to_json(const gba_device_counters& counters) {
  return {{"arrivals", counters.arrivals}, {"releases", counters.releases},     {"stale", counters.stale},
          {"rejected", counters.rejected}, {"dma_faults", counters.dma_faults}, {"timeouts", counters.timeouts},
          {"resets", counters.resets},     {"errors", counters.errors},         {"interrupts", counters.interrupts},
          {"wakeups", counters.wakeups}};
}

int report(const Invocation& invocation, const Failure& failure) {
  if (invocation.json) {
    const char* const name = ::strerrorname_np(-failure.error);
    print_json(Json{{"error", {{"name", name == nullptr ? "" : name}, {"text", failure.text}}}});
  } else {
    std::fprintf(stderr, "%s\n", failure.text.c_str());
  }
  return failure.code;
}

std::function<int()> on_device(const Invocation& invocation, std::uint32_t flags,
                               std::function<int(gba_device* device, const gba_device_info& info)> use) {
  return [&invocation, flags, use = std::move(use)] {
    const auto device = open_device(invocation.device, flags);
    const auto info = device ? info_of(device->get()) : Result<gba_device_info>(device.error());
    return info ? use(device->get(), *info) : report(invocation, info.error());
  };
}

}  // namespace tool
