// SPDX-License-Identifier: Apache-2.0
// gba monitor: the groups and counters of a device as they change. A live screen on a terminal, lines elsewhere.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/tool/group_view.hpp"
#include "driver/tool/output.hpp"
#include "driver/tool/terminal.hpp"

namespace tool {
namespace {

constexpr double kShortest = 0.01;
constexpr double kLongest = 3600;

struct MonitorArguments {
  double interval = 1.0;  // seconds between two looks
  std::uint64_t count = 0;
};

// ---- What two looks show ----

struct Counter {
  std::string name;
  std::uint64_t value = 0;
  double rate = 0;  // per second
};

struct Picture {
  std::time_t time = 0;
  std::string device;
  std::string condition;
  std::uint32_t groups = 0;  // of the device
  std::vector<Counter> counters;
  std::vector<GroupView> views;
};

std::vector<Counter> counters_between(const TimedLook& before, const TimedLook& now) {
  const double seconds = std::chrono::duration<double>(now.time - before.time).count();
  const Json old = to_json(before.look.counters);
  const Json counted = to_json(now.look.counters);
  std::vector<Counter> counters;
  for (const auto& [name, value] : counted.items()) {
    const auto count = value.get<std::uint64_t>();
    // A device that was powered on again counts from 0.
    const std::uint64_t more = count - std::min(count, old[name].get<std::uint64_t>());
    counters.push_back({name, count, seconds > 0 ? static_cast<double>(more) / seconds : 0});
  }
  return counters;
}

Picture picture_of(const Looker& looker, const TimedLook& before, const TimedLook& now) {
  return {.time = std::time(nullptr),
          .device = static_cast<const char*>(now.look.info.path) + looker.seen_by_text(),
          .condition = now.look.condition,
          .groups = now.look.info.groups,
          .counters = counters_between(before, now),
          .views = compare(before, now)};
}

unsigned joined(const GroupView& view) {
  return static_cast<unsigned>(std::count_if(std::begin(view.status.ports), std::end(view.status.ports),
                                             [](std::uint16_t port) { return port != GBA_NO_PORT; }));
}

// ---- Plain lines, and JSON ----

void print_lines(const Picture& picture) {
  const std::string time = utc_time(picture.time);
  std::vector<std::string> counters;
  for (const auto& counter : picture.counters) {
    counters.push_back(fmt::format("{} {} ({}/s)", counter.name, counter.value, rate_text(counter.rate)));
  }
  print_text(fmt::format("{} device {} condition {}; {}\n", time, picture.device,
                         picture.condition.substr(0, picture.condition.find('\n')), fmt::join(counters, ", ")));
  for (const auto& view : picture.views) {
    const std::string detail = detail_of(view);
    print_text(fmt::format("{} group {} {} joined {}/{} arrived {} sequence {} rate {}/s{}\n", time, view.status.group,
                           view.state, joined(view), view.status.member_count, view.status.arrival_count,
                           view.status.sequence, rate_text(view.rate), detail.empty() ? "" : "; " + detail));
  }
}

void print_object(const Looker& looker, const Picture& picture, const gba_device_info& info) {
  Json counters;
  Json rates;
  for (const auto& counter : picture.counters) {
    counters[counter.name] = counter.value;
    rates[counter.name] = counter.rate;
  }
  Json groups = Json::array();
  for (const auto& view : picture.views) {
    Json group = to_json(view, picture.time);
    group["joined"] = joined(view);
    groups.push_back(std::move(group));
  }
  print_json_line(Json{{"device", static_cast<const char*>(info.path)},
                       {"seen_by", looker.seen_by() ? Json(*looker.seen_by()) : Json()},
                       {"time", utc_time(picture.time)},
                       {"condition", picture.condition},
                       {"counters", counters},
                       {"counter_rates", rates},
                       {"groups", groups}});
}

// ---- The screen ----

void append(std::vector<Line>& lines, const std::string& text, Colour colour = Colour::kNone) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back({line, colour});
  }
}

Colour colour_of(std::string_view state) {
  return state == "error"     ? Colour::kRed
         : state == "waiting" ? Colour::kYellow
         : state == "running" ? Colour::kGreen
                              : Colour::kFaint;
}

std::vector<Line> lines_of(const Picture& picture, double interval, bool paused, bool keys) {
  std::vector<Line> lines;
  append(lines,
         fmt::format("{}  {}  every {:g} s{}", picture.device, local_time(picture.time), interval,
                     paused ? "  PAUSED" : ""),
         Colour::kBold);
  append(lines, "condition: " + picture.condition, picture.condition == "ok" ? Colour::kNone : Colour::kRed);
  lines.emplace_back();
  std::vector<std::vector<std::string>> rows{{"COUNTER", "TOTAL", "RATE/s"}};
  for (const auto& counter : picture.counters) {
    rows.push_back({counter.name, std::to_string(counter.value), rate_text(counter.rate)});
  }
  append(lines, table(rows));
  lines.emplace_back();
  append(lines, fmt::format("{} of {} in use", picture.views.size(), count(picture.groups, "group")));
  std::vector<Line> groups;
  append(groups, to_text(picture.views, picture.time));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) {  // the first line has the titles
      groups[i].colour = colour_of(picture.views[i - 1].state);
    }
    lines.push_back(groups[i]);
  }
  if (keys) {
    lines.emplace_back();
    append(lines, "q quit   p pause   + faster   - slower", Colour::kFaint);
  }
  return lines;
}

// ---- The command ----

class Monitor {
 public:
  Monitor(const Invocation& invocation, const MonitorArguments& arguments, Looker looker, Signals& signals, bool live)
      : invocation_(invocation), arguments_(arguments), looker_(std::move(looker)), signals_(signals), live_(live) {}

  /// The failure of a look, once the terminal is as it was; nothing if it was told to end.
  std::optional<Failure> run() {
    if (live_) {
      terminal_.emplace();
    }
    auto failure = look_on();
    terminal_.reset();
    return failure;
  }

 private:
  std::optional<Failure> look_on() {
    auto before = look_at(looker_);
    if (!before) {
      return before.error();
    }
    for (std::uint64_t shown = 0; arguments_.count == 0 || shown < arguments_.count;) {
      if (!pass_time()) {
        return std::nullopt;
      }
      if (paused_) {
        continue;
      }
      auto now = look_at(looker_);
      if (!now) {
        return now.error();
      }
      picture_ = picture_of(looker_, *before, *now);
      show(now->look.info);
      before = std::move(now);
      ++shown;
      if (std::ferror(stdout) != 0) {
        return std::nullopt;  // main says so
      }
    }
    return std::nullopt;
  }

  /// Serves keys and signals until the next look is due; false if one of them ends the program.
  bool pass_time() {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
      const double left =
          arguments_.interval - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (left <= 0) {
        return true;
      }
      const auto event = signals_.wait(left, terminal_ && terminal_->has_keys());
      if (event.signal == SIGTSTP) {
        terminal_->stop();
      } else if ((event.signal != 0 && event.signal != SIGWINCH) || event.key == 'q') {
        return false;
      }
      if (event.signal != 0 || event.key != 0) {
        handle(event.key);
        show_again();
      }
    }
  }

  void handle(char key) {
    switch (key) {
      case 'p':
        paused_ = !paused_;
        break;
      case '+':
        arguments_.interval = std::max(kShortest, arguments_.interval / 2);
        break;
      case '-':
        arguments_.interval = std::min(kLongest, arguments_.interval * 2);
        break;
      default:
        break;
    }
  }

  void show_again() const {
    if (terminal_ && picture_) {
      terminal_->show(lines_of(*picture_, arguments_.interval, paused_, terminal_->has_keys()));
    }
  }

  void show(const gba_device_info& info) const {
    if (terminal_) {
      show_again();
    } else if (invocation_.json) {
      print_object(looker_, *picture_, info);
    } else {
      print_lines(*picture_);
    }
    std::fflush(stdout);
  }

  const Invocation& invocation_;
  MonitorArguments arguments_;
  Looker looker_;
  Signals& signals_;
  const bool live_;
  std::optional<Terminal> terminal_;
  std::optional<Picture> picture_;
  bool paused_ = false;
};

int monitor(const Invocation& invocation, const MonitorArguments& arguments) {
  const bool live = !invocation.json && ::isatty(STDOUT_FILENO) != 0;
  Signals signals(live);  // before libgba has a thread that could get one
  auto looker = Looker::open(invocation.device, GBA_OPEN_FATAL);
  if (!looker) {
    return report(invocation, looker.error());
  }
  const auto failure = Monitor(invocation, arguments, *std::move(looker), signals, live).run();
  return failure ? report(invocation, *failure) : static_cast<int>(kDone);
}

}  // namespace

void declare_monitor(CLI::App& app, Invocation& invocation) {
  const auto arguments = std::make_shared<MonitorArguments>();
  auto command = declare(app, invocation, "monitor", "groups, counters and their rates, live until q or SIGINT",
                         [&invocation, arguments] { return monitor(invocation, *arguments); });
  take_device(command, invocation);
  command.number("--interval", arguments->interval, kShortest, kLongest, "seconds between two looks");
  command.number("--count", arguments->count, "end after this number of looks (default: go on)");
}

}  // namespace tool
