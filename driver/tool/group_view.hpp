// SPDX-License-Identifier: Apache-2.0
// A group as two looks at it show it, in words.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "driver/tool/output.hpp"
#include "gba/gba.h"

namespace tool {

struct GroupView {
  gba_group_status status{};      // of the second look
  std::optional<double> rate;     // barriers a second between the looks
  const char* state = "";         // running, waiting, idle, disabled, error
  std::vector<unsigned> missing;  // who has not arrived; of a group that is waiting, or in error
};

/// `earlier` is null where the first look did not see the group.
GroupView view_of(const gba_group_status& status, const gba_group_status* earlier, double seconds);

Json to_json(const GroupView& view, std::time_t now);
std::string to_text(const std::vector<GroupView>& views, std::time_t now);

/// "2026-11-21T13:20:03Z", "2026-11-21 14:20:03".
std::string utc_time(std::time_t time);
std::string local_time(std::time_t time);

}  // namespace tool
