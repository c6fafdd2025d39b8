// SPDX-License-Identifier: Apache-2.0
// The device of the world team, and the time of a barrier with it and without.
#pragma once

#include <optional>
#include <string>

namespace kv_program {

/// Which device the world team's barriers use, or why none. Asked before anything changes that.
std::string describe_device();

/// Mean times in microseconds.
struct BarrierTimes {
  std::optional<double> device;  // nothing: there is no device, or it has been lost
  double software;
  std::string counters;  // the device's own, after its barriers
};
/// Collective. The world team uses software barriers afterwards.
BarrierTimes time_barriers();

/// How many barriers the world team has had, and the device's own counters if there is one; a line each.
std::string describe_counts(const BarrierTimes& times);

}  // namespace kv_program
