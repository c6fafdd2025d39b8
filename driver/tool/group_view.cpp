// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/group_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "uapi/gba_regs.h"

namespace tool {
namespace {

/// JSON lists all of them.
constexpr std::size_t kMostNames = 8;

bool has(const std::uint64_t* mask, unsigned member) {
  return (mask[member / 64] >> (member % 64) & 1) != 0;
}

std::vector<unsigned> missing_in(const gba_group_status& status) {
  std::vector<unsigned> missing;
  for (unsigned member = 0; member < 64 * GBA_GROUP_MASK_WORDS; ++member) {
    if (has(static_cast<const std::uint64_t*>(status.members), member) &&
        !has(static_cast<const std::uint64_t*>(status.arrived), member)) {
      missing.push_back(member);
    }
  }
  return missing;
}

const char* state_of(const gba_group_status& status, const gba_group_status* earlier) {
  if ((status.status & GBA_STATUS_ERROR) != 0) {
    return "error";
  }
  if (earlier != nullptr && earlier->sequence != status.sequence) {
    return "running";
  }
  if (status.enabled == 0) {
    return "disabled";
  }
  return (status.status & GBA_STATUS_ACTIVE) != 0 ? "waiting" : "idle";
}

const char* error_name(std::uint32_t code) {
  switch (code) {
    case GBA_ERROR_LINK_DOWN:
      return "LINK_DOWN";
    case GBA_ERROR_TIMEOUT:
      return "TIMEOUT";
    case GBA_ERROR_DMA_FAULT:
      return "DMA_FAULT";
    case GBA_ERROR_RESET:
      return "RESET";
    case GBA_ERROR_PROTOCOL:
      return "PROTOCOL";
    case GBA_ERROR_LEAVE:
      return "LEAVE";
    default:
      return "unknown";
  }
}

/// "2 (port 5)".
std::string member_text(const gba_group_status& status, unsigned member) {
  const std::uint16_t port = member < std::size(status.ports) ? status.ports[member] : GBA_NO_PORT;
  return port == GBA_NO_PORT ? fmt::format("{} (no port)", member) : fmt::format("{} (port {})", member, port);
}

std::string missing_text(const GroupView& view) {
  std::vector<std::string> names;
  for (const unsigned member : view.missing) {
    if (names.size() == kMostNames) {
      break;
    }
    names.push_back(member_text(view.status, member));
  }
  const std::size_t more = view.missing.size() - names.size();
  return fmt::format("member{} {}{}", view.missing.size() == 1 ? "" : "s", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string formatted(std::time_t time, const char* format, std::tm* (*convert)(const std::time_t*, std::tm*)) {
  std::tm parts{};
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), format, convert(&time, &parts));
  return {text.data(), length};
}

std::time_t opened_at(const gba_group_status& status, std::time_t now) {
  return now - static_cast<std::time_t>(status.round_age_ns / 1'000'000'000);
}

std::vector<std::string> row_of(const GroupView& view, std::time_t now) {
  const gba_group_status& status = view.status;
  const bool open = status.round_age_ns != 0 && std::string(view.state) == "waiting";
  return {std::to_string(status.group),
          view.state,
          fmt::format("{}/{}", status.arrival_count, status.member_count),
          std::to_string(status.sequence),
          rate_text(view.rate),
          open ? local_time(opened_at(status, now)) : "-",
          open ? duration(status.round_age_ns) : "-",
          status.timeout_ns == 0 ? "-" : duration(status.timeout_ns),
          detail_of(view)};
}

/// `earlier` is null if the first look did not see the group.
GroupView view_of(const gba_group_status& status, const gba_group_status* earlier, double seconds) {
  GroupView view{.status = status, .rate = std::nullopt, .state = state_of(status, earlier), .missing = {}};
  if (earlier != nullptr && seconds > 0) {
    view.rate = static_cast<double>(status.sequence - earlier->sequence) / seconds;
  }
  // While a group runs, its registers are not from one moment.
  const std::string state = view.state;
  if (state == "waiting" || state == "error") {
    view.missing = missing_in(status);
  }
  return view;
}

const gba_group_status* earlier_of(const gba_group_status& status, const TimedLook& before) {
  for (const auto& earlier : before.look.groups) {
    if (earlier.group == status.group && earlier.sequence <= status.sequence) {
      return &earlier;
    }
  }
  return nullptr;
}

}  // namespace

std::string utc_time(std::time_t time) {
  return formatted(time, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r);
}

std::string local_time(std::time_t time) {
  return formatted(time, "%Y-%m-%d %H:%M:%S", ::localtime_r);
}

std::string rate_text(std::optional<double> rate) {
  if (!rate) {
    return "-";
  }
  return fmt::format("{:.{}f}", *rate, *rate > 0 && *rate < 10 ? 1 : 0);
}

std::string detail_of(const GroupView& view) {
  const gba_group_status& status = view.status;
  const std::string missing = view.missing.empty() ? "" : missing_text(view);
  if ((status.status & GBA_STATUS_ERROR) == 0) {
    return missing.empty() ? "" : fmt::format("missing: {}", missing);
  }
  std::string text = error_name(status.error_code);
  if (status.error_member != GBA_NO_MEMBER) {
    text += fmt::format(" of member {}", member_text(status, status.error_member));
  }
  // If no member has arrived, no round was open.
  return text + (missing.empty() || status.arrival_count == 0 ? "" : "; missing: " + missing);
}

Json to_json(const GroupView& view, std::time_t now) {
  const gba_group_status& status = view.status;
  Json missing = Json::array();
  for (const unsigned member : view.missing) {
    const std::uint16_t port = status.ports[member];
    missing.push_back({{"member", member}, {"port", port == GBA_NO_PORT ? Json() : Json(port)}});
  }
  Json error;
  if ((status.status & GBA_STATUS_ERROR) != 0) {
    const std::uint32_t member = status.error_member;
    error = {{"code", error_name(status.error_code)}, {"member", member == GBA_NO_MEMBER ? Json() : Json(member)}};
  }
  const bool open = status.round_age_ns != 0;
  return {{"group", status.group},
          {"state", view.state},
          {"members", status.member_count},
          {"arrived", status.arrival_count},
          {"missing", missing},
          {"sequence", status.sequence},
          {"status", status.status},
          {"enabled", status.enabled != 0},
          {"error", error},
          {"timeout_ns", status.timeout_ns},
          {"round_age_ns", open ? Json(status.round_age_ns) : Json()},
          {"since", open ? Json(utc_time(opened_at(status, now))) : Json()},
          {"rate", view.rate ? Json(*view.rate) : Json()}};
}

std::string to_text(const std::vector<GroupView>& views, std::time_t now) {
  if (views.empty()) {
    return "";
  }
  std::vector<std::vector<std::string>> rows{
      {"GROUP", "STATE", "ARRIVED", "SEQUENCE", "RATE/s", "SINCE", "OPEN FOR", "TIMEOUT", ""}};
  for (const auto& view : views) {
    rows.push_back(row_of(view, now));
  }
  return table(rows);
}

Result<TimedLook> look_at(Looker& looker) {
  const auto time = std::chrono::steady_clock::now();
  auto look = looker.look();
  if (!look) {
    return look.error();
  }
  return TimedLook{.time = time, .look = *std::move(look)};
}

std::vector<GroupView> compare(const TimedLook& before, const TimedLook& now) {
  const double seconds = std::chrono::duration<double>(now.time - before.time).count();
  std::vector<GroupView> views;
  for (const auto& status : now.look.groups) {
    views.push_back(view_of(status, earlier_of(status, before), seconds));
  }
  return views;
}

}  // namespace tool
