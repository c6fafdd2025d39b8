// SPDX-License-Identifier: Apache-2.0
// gba groups: what the groups of a device do, and who does not arrive.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/tool/device.hpp"
#include "driver/tool/group_view.hpp"

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;
using Statuses = std::vector<gba_group_status>;  // of the groups that are in use

struct Arguments {
  bool watch = false;
  double interval = 1.0;  // seconds between two looks
};

struct Look {
  Clock::time_point time;
  Statuses groups;
};

Result<Look> look_at(gba_device* device, std::uint32_t groups) {
  Look look{.time = Clock::now(), .groups = {}};
  for (std::uint32_t group = 0; group < groups; ++group) {
    gba_group_status status{};
    if (const int error = gba_group_get_status(device, group, &status); error != 0) return failed(error);
    if (status.member_count != 0) look.groups.push_back(status);
  }
  return look;
}

const gba_group_status* earlier_of(const gba_group_status& status, const Look& before) {
  for (const auto& earlier : before.groups) {
    if (earlier.group == status.group && earlier.sequence <= status.sequence) return &earlier;
  }
  return nullptr;
}

std::vector<GroupView> compare(const Look& before, const Look& now) {
  const double seconds = std::chrono::duration<double>(now.time - before.time).count();
  std::vector<GroupView> views;
  for (const auto& status : now.groups) views.push_back(view_of(status, earlier_of(status, before), seconds));
  return views;
}

void print_views(const Invocation& invocation, const Arguments& arguments, const gba_device_info& info,
                 const std::vector<GroupView>& views) {
  const std::string path = static_cast<const char*>(info.path);
  const std::time_t now = std::time(nullptr);
  if (invocation.json) {
    Json groups = Json::array();
    for (const auto& view : views) groups.push_back(to_json(view, now));
    const Json json{{"device", path}, {"time", utc_time(now)}, {"groups", groups}};
    if (arguments.watch) {
      print_json_line(json);
    } else {
      print_json(json);
    }
  } else {
    // On a terminal each look takes the place of the one before.
    if (arguments.watch && ::isatty(STDOUT_FILENO) != 0) print_text("\033[H\033[2J");
    print_text(path + ", " + local_time(now) + ": " + std::to_string(views.size()) + " of " +
               count(info.groups, "group") + " in use\n");
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
  const auto device = open_device(invocation.device);
  if (!device) return report(invocation, device.error());
  const auto info = info_of(device->get());
  if (!info) return report(invocation, info.error());
  auto before = look_at(device->get(), info->groups);
  if (!before) return report(invocation, before.error());
  do {
    if (told_to_stop(stop_signals, arguments.interval)) return kDone;
    auto now = look_at(device->get(), info->groups);
    if (!now) return report(invocation, now.error());
    print_views(invocation, arguments, *info, compare(*before, *now));
    before = std::move(now);
  } while (arguments.watch && std::ferror(stdout) == 0);
  return kDone;
}

}  // namespace

void declare_groups(CLI::App& app, Invocation& invocation) {
  const auto arguments = std::make_shared<Arguments>();
  auto* const command = declare(app, invocation, "groups", "what the groups do, who has not arrived, since when",
                                [&invocation, arguments] { return groups(invocation, *arguments); });
  take_device(*command, invocation);
  command->add_flag("--watch", arguments->watch, "look again and again, until SIGINT");
  command->add_option("--interval", arguments->interval, "seconds between two looks")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
}

}  // namespace tool
