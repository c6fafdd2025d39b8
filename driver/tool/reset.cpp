// SPDX-License-Identifier: Apache-2.0
// gba reset: the whole device, all groups of all ports.
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/tool/device.hpp"

namespace tool {
namespace {

int reset(const Invocation& invocation, bool confirmed, gba_device* device, const gba_device_info& info) {
  const std::string path = static_cast<const char*>(info.path);
  if (!confirmed) {
    return report(
        invocation,
        {-ECANCELED,
         fmt::format(
             "gba: not reset: {}: every barrier of every port would fail, and every group would be in error until "
             "its owner frees it; --yes does it",
             path),
         kUsage});
  }
  if (const int error = gba_device_reset(device); error != 0) {
    return report(invocation, {error, gba_error_text()});
  }
  if (invocation.json) {
    print_json(Json{{"device", path}, {"reset", true}});
  } else {
    print_text(fmt::format("{}: reset; every group is in error until its owner frees it\n", path));
  }
  return kDone;
}

}  // namespace

void declare_reset(CLI::App& app, Invocation& invocation) {
  const auto confirmed = std::make_shared<bool>(false);
  auto command = declare(
      app, invocation, "reset", "reset the whole device, through its privileged port",
      on_device(invocation, GBA_OPEN_FATAL, [&invocation, confirmed](gba_device* device, const gba_device_info& info) {
        return reset(invocation, *confirmed, device, info);
      }));
  take_device(command, invocation);
  command.flag("--yes", *confirmed, "yes, end all barriers of all ports");
}

}  // namespace tool
