// SPDX-License-Identifier: Apache-2.0
// What the device has done, every so often on standard output.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fake_device/log.hpp"
#include "fake_device/model.hpp"

namespace fake_device {

/// Used by one thread.
class Stats {
 public:
  /// `interval` 0: never.
  Stats(Time interval, LineFormat format, Time now);

  /// When the next line is due; kNever.
  [[nodiscard]] Time due() const { return due_; }
  /// The line for now: totals since the start, and arrivals and releases a second since the last line.
  std::string line(const Model& model, std::size_t clients, Time now);

 private:
  const Time interval_;
  const LineFormat format_;
  Time due_;
  Time last_;
  std::array<std::uint64_t, 2> before_{};  // arrivals and releases at `last_`
};

}  // namespace fake_device
