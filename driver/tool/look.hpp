// SPDX-License-Identifier: Apache-2.0
// Looks at a device: through a port of its own, or if that is in use, through the process that uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/status_socket.hpp"
#include "driver/tool/device.hpp"

namespace tool {

struct Look {
  gba_device_info info{};
  gba_device_counters counters{};
  GroupLimit limit = {};
  std::string condition = {};                 // "ok", or what is wrong with the device and what fixes that
  std::vector<gba_group_status> groups = {};  // those that are in use
};

class Looker {
 public:
  /// `flags`: of gba_open_options. If another process has the port, and none answers for it, the text says how else to
  /// look.
  static Result<Looker> open(const std::string& path, std::uint32_t flags = 0);

  Result<Look> look();
  /// The process that answers; nothing if the port is this process's.
  [[nodiscard]] std::optional<int> seen_by() const { return view_ ? std::optional(view_->pid) : std::nullopt; }
  /// "", or ", as seen by process 4711", of another user with " of user 1000".
  [[nodiscard]] std::string seen_by_text() const;

 private:
  Looker() = default;

  DevicePointer device_;
  std::optional<gba::StatusView> view_;  // the last answer
};

}  // namespace tool
