// SPDX-License-Identifier: Apache-2.0
// libgba's handles as objects, and its failures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "driver/tool/invocation.hpp"
#include "driver/tool/output.hpp"
#include "gba/gba.h"

namespace tool {

struct CloseDevice {
  void operator()(gba_device* device) const { gba_close(device); }
};
using DevicePointer = std::unique_ptr<gba_device, CloseDevice>;

struct LeaveGroup {
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using GroupPointer = std::unique_ptr<gba_group, LeaveGroup>;

/// A call of libgba that failed: its -errno, and its text.
struct Failure {
  int error = 0;
  std::string text;
};
template <typename T>
using Result = tl::expected<T, Failure>;

/// The failure that a call has just returned.
inline tl::unexpected<Failure> failed(int error) {
  return tl::make_unexpected(Failure{error, gba_error_text()});
}

/// `flags` of gba_open_options.
Result<DevicePointer> open_device(const std::string& path, std::uint32_t flags = 0);
Result<gba_device_info> info_of(gba_device* device);
/// Where its releases land, for people.
std::string flag_place(const gba_device_info& info);
Result<gba_device_counters> counters_of(gba_device* device);
Json to_json(const gba_device_counters& counters);

/// Prints it, on standard output where JSON was asked for, and gives the exit code.
int report(const Invocation& invocation, const Failure& failure);

}  // namespace tool
