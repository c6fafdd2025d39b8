// SPDX-License-Identifier: Apache-2.0
// gba limit: how many groups a port may have (uapi rule 37).
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/tool/device.hpp"
#include "uapi/gba_regs.h"

namespace tool {
namespace {

struct LimitArguments {
  std::uint64_t groups = 0;  // 0: shown only
};

Result<GroupLimit> set_limit(gba_device* device, const gba_device_info& info, std::uint64_t groups) {
  const std::string tried =
      fmt::format("gba: {}: cannot set the limit of groups to {}: ", static_cast<const char*>(info.path), groups);
  if (groups > info.groups) {
    return Failure{-EINVAL, fmt::format("{}the device has {}", tried, count(info.groups, "group")), kUsage};
  }
  if (const int error = gba_device_write_register(device, GBA_REG_GROUP_LIMIT, 8, groups); error != 0) {
    return failed(error);
  }
  const auto now = group_limit_of(device, info);
  if (now && now->most != groups) {
    return Failure{-EPERM, tried +
                               "this is not the privileged port, which is the physical function, or with a "
                               "gba-fake-device its --admin-socket"};
  }
  return now;
}

int limit(const Invocation& invocation, const LimitArguments& arguments, gba_device* device,
          const gba_device_info& info) {
  const std::string path = static_cast<const char*>(info.path);
  auto found = group_limit_of(device, info);
  if (found && found->most == 0) {
    return report(invocation, {-EOPNOTSUPP, fmt::format("gba: {}: this device does not limit the groups of a port (its "
                                                        "registers have an earlier version)",
                                                        path)});
  }
  if (found && arguments.groups != 0) {
    found = set_limit(device, info, arguments.groups);
  }
  if (!found) {
    return report(invocation, found.error());
  }
  if (invocation.json) {
    print_json(Json{{"device", path}, {"group_limit", found->most}, {"groups", info.groups}});
  } else {
    print_text(fmt::format("{}: a port may have {} of the {} groups\n", path, found->most, info.groups));
  }
  return kDone;
}

}  // namespace

void declare_limit(CLI::App& app, Invocation& invocation) {
  const auto arguments = std::make_shared<LimitArguments>();
  auto command = declare(
      app, invocation, "limit", "how many groups a port may have; sets it, through the privileged port",
      on_device(invocation, GBA_OPEN_FATAL, [&invocation, arguments](gba_device* device, const gba_device_info& info) {
        return limit(invocation, *arguments, device, info);
      }));
  take_device(command, invocation);
  command.number("--groups", arguments->groups, 1, GBA_CAPS_GROUPS_MASK, "set it to this many");
}

}  // namespace tool
