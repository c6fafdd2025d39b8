// SPDX-License-Identifier: Apache-2.0
// gba groups: what the groups of a device do, and which members have not arrived.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/tool/device.hpp"
#include "driver/tool/look.hpp"
#include "driver/tool/output.hpp"
#include "gba/gba.h"
#include "uapi/gba_regs.h"

namespace tool {
namespace {

// ---- A group as two looks at it show it, in words ----

struct GroupView {
  gba_group_status status{};      // of the second look
  std::optional<double> rate;     // barriers a second between the looks
  const char* state = "";         // running, waiting, idle, disabled, error
  std::vector<unsigned> missing;  // members that have not arrived, if the group is waiting or in error
};

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

std::string rate_text(std::optional<double> rate) {
  if (!rate) {
    return "-";
  }
  return fmt::format("{:.{}f}", *rate, *rate > 0 && *rate < 10 ? 1 : 0);
}

std::string formatted(std::time_t time, const char* format, std::tm* (*convert)(const std::time_t*, std::tm*)) {
  std::tm parts{};
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), format, convert(&time, &parts));
  return {text.data(), length};
}

/// "2026-11-21T13:20:03Z".
std::string utc_time(std::time_t time) {
  return formatted(time, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r);
}

/// "2026-11-21 14:20:03".
std::string local_time(std::time_t time) {
  return formatted(time, "%Y-%m-%d %H:%M:%S", ::localtime_r);
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

// ---- The looks ----

using Clock = std::chrono::steady_clock;

struct Arguments {
  bool watch = false;
  double interval = 1.0;  // seconds between two looks
};

struct TimedLook {
  Clock::time_point time;
  Look look;
};

Result<TimedLook> look_at(Looker& looker) {
  const auto time = Clock::now();
  auto look = looker.look();
  if (!look) {
    return look.error();
  }
  return TimedLook{.time = time, .look = *std::move(look)};
}

const gba_group_status* earlier_of(const gba_group_status& status, const TimedLook& before) {
  for (const auto& earlier : before.look.groups) {
    if (earlier.group == status.group && earlier.sequence <= status.sequence) {
      return &earlier;
    }
  }
  return nullptr;
}

std::vector<GroupView> compare(const TimedLook& before, const TimedLook& now) {
  const double seconds = std::chrono::duration<double>(now.time - before.time).count();
  std::vector<GroupView> views;
  for (const auto& status : now.look.groups) {
    views.push_back(view_of(status, earlier_of(status, before), seconds));
  }
  return views;
}

void print_views(const Invocation& invocation, const Arguments& arguments, const Looker& looker,
                 const gba_device_info& info, const std::vector<GroupView>& views) {
  const std::string path = static_cast<const char*>(info.path);
  const std::time_t now = std::time(nullptr);
  if (invocation.json) {
    Json groups = Json::array();
    for (const auto& view : views) {
      groups.push_back(to_json(view, now));
    }
    const Json json{{"device", path},
                    {"seen_by", looker.seen_by() ? Json(*looker.seen_by()) : Json()},
                    {"time", utc_time(now)},
                    {"groups", groups}};
    if (arguments.watch) {
      print_json_line(json);
    } else {
      print_json(json);
    }
  } else {
    // On a terminal each look replaces the one before.
    if (arguments.watch && ::isatty(STDOUT_FILENO) != 0) {
      print_text("\033[H\033[2J");
    }
    print_text(fmt::format("{}, {}{}: {} of {} in use\n", path, local_time(now), looker.seen_by_text(), views.size(),
                           count(info.groups, "group")));
    print_text(to_text(views, now));
  }
  std::fflush(stdout);
}

/// Sleeps for the interval; true if SIGINT or SIGTERM came first.
bool told_to_stop(const sigset_t& stop_signals, double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  const timespec time{.tv_sec = whole, .tv_nsec = static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  return ::sigtimedwait(&stop_signals, nullptr, &time) >= 0;
}

int groups(const Invocation& invocation, const Arguments& arguments) {
  sigset_t stop_signals;
  ::sigemptyset(&stop_signals);
  ::sigaddset(&stop_signals, SIGINT);
  ::sigaddset(&stop_signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &stop_signals, nullptr);
  auto looker = Looker::open(invocation.device);
  if (!looker) {
    return report(invocation, looker.error());
  }
  auto before = look_at(*looker);
  if (!before) {
    return report(invocation, before.error());
  }
  do {
    if (told_to_stop(stop_signals, arguments.interval)) {
      return kDone;
    }
    auto now = look_at(*looker);
    if (!now) {
      return report(invocation, now.error());
    }
    print_views(invocation, arguments, *looker, now->look.info, compare(*before, *now));
    before = std::move(now);
  } while (arguments.watch && std::ferror(stdout) == 0);
  return kDone;
}

}  // namespace

void declare_groups(CLI::App& app, Invocation& invocation) {
  const auto arguments = std::make_shared<Arguments>();
  auto* const command =
      declare(app, invocation, "groups", "what the groups do, which members have not arrived, since when",
              [&invocation, arguments] { return groups(invocation, *arguments); });
  take_device(*command, invocation);
  command->add_flag("--watch", arguments->watch, "look again and again, until SIGINT");
  command->add_option("--interval", arguments->interval, "seconds between two looks")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
}

}  // namespace tool
