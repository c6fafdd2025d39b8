// SPDX-License-Identifier: Apache-2.0
// gba groups: what the groups of a device do, and which members have not arrived.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "driver/tool/group_view.hpp"
#include "driver/tool/output.hpp"

namespace tool {
namespace {

struct GroupsArguments {
  bool watch = false;
  double interval = 1.0;  // seconds between two looks
};

void print_views(const Invocation& invocation, const GroupsArguments& arguments, const Looker& looker,
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

int groups(const Invocation& invocation, const GroupsArguments& arguments) {
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
  const auto arguments = std::make_shared<GroupsArguments>();
  auto command = declare(app, invocation, "groups", "what the groups do, which members have not arrived, since when",
                         [&invocation, arguments] { return groups(invocation, *arguments); });
  take_device(command, invocation);
  command.flag("--watch", arguments->watch, "look again and again, until SIGINT");
  command.number("--interval", arguments->interval, 0.01, 3600, "seconds between two looks");
}

}  // namespace tool
