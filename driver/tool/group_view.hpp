// SPDX-License-Identifier: Apache-2.0
// A group as two looks at it show it, in words.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "driver/tool/look.hpp"

namespace tool {

struct GroupView {
  gba_group_status status{};      // of the second look
  std::optional<double> rate;     // barriers per second between the looks
  const char* state = "";         // running, waiting, idle, disabled, error
  std::vector<unsigned> missing;  // members that have not arrived, if the group is waiting or in error
};

struct TimedLook {
  std::chrono::steady_clock::time_point time;
  Look look;
};
Result<TimedLook> look_at(Looker& looker);

/// The groups of the second look.
std::vector<GroupView> compare(const TimedLook& before, const TimedLook& now);

/// "1234", "0.5", or "-" if it is not known.
std::string rate_text(std::optional<double> rate);
/// The missing members and the error, if there is one.
std::string detail_of(const GroupView& view);
/// A table; "" without groups. `now`: what the clock showed at the second look.
std::string to_text(const std::vector<GroupView>& views, std::time_t now);
Json to_json(const GroupView& view, std::time_t now);

/// "2026-11-21T13:20:03Z".
std::string utc_time(std::time_t time);
/// "2026-11-21 14:20:03".
std::string local_time(std::time_t time);

}  // namespace tool
