// SPDX-License-Identifier: Apache-2.0
#include "fake_device/log.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <new>
#include <nlohmann/json.hpp>

#include "fake_device/effects.hpp"

namespace fake_device {

namespace {

// With the rest of the line less than what a pipe takes whole, also if every byte of it must be escaped.
constexpr std::size_t kLongest = 512;

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "";
}

std::string text_line(LogLevel level, std::string_view text, int port) {
  return fmt::format("gba-fake-device: {}{}{}\n", level == LogLevel::kInfo ? "" : fmt::format("{}: ", name_of(level)),
                     port == kNoLoggedPort ? "" : fmt::format("port {}: ", port), text);
}

std::string json_line(LogLevel level, std::string_view text, int port) {
  nlohmann::ordered_json object{{"time", wall_clock()}, {"level", name_of(level)}};
  if (port != kNoLoggedPort) {
    object["port"] = port;
  }
  object["message"] = text;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

void Log::write(LogLevel level, std::string_view text, int port) const try {
  if (wants(level)) {
    const auto shown = text.substr(0, kLongest);
    write_line(STDERR_FILENO,
               format_ == LineFormat::kJson ? json_line(level, shown, port) : text_line(level, shown, port));
  }
} catch (const std::bad_alloc&) {
  write_line(STDERR_FILENO, "gba-fake-device: error: out of memory\n");
}

std::string wall_clock() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto thousandths = duration_cast<milliseconds>(since_epoch).count();
  const auto seconds = static_cast<std::time_t>(thousandths / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(thousandths % 1000));
  return std::string(text.data(), length) + fraction.data();
}

void write_line(int fd, std::string_view line) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) {
    [[maybe_unused]] const auto written = ::write(fd, line.data(), line.size());
  }
}

namespace {

// In the order of Counter.
constexpr std::array kNames{"arrivals", "releases", "stale",  "rejected",   "dma_faults",
                            "timeouts", "resets",   "errors", "interrupts", "wakeups"};
static_assert(kNames.size() == kCounters);

std::string as_text(const nlohmann::ordered_json& object) {
  std::string line = "gba-fake-device: stats:";
  for (const auto& [name, value] : object.items()) {
    if (name != "time") {
      line += fmt::format(" {}={}", name, value.dump());
    }
  }
  return line + "\n";
}

}  // namespace

Stats::Stats(Time interval, LineFormat format, Time now)
    : interval_(interval), format_(format), due_(interval == 0 ? kNever : now + interval), last_(now) {}

std::string Stats::line(const Model& model, std::size_t clients, Time now) {
  nlohmann::ordered_json object{{"time", wall_clock()}, {"clients", clients}, {"groups", model.allocated_groups()}};
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    object[kNames[index]] = model.counter(static_cast<Counter>(index));
  }
  const double seconds = static_cast<double>(now - last_) / static_cast<double>(kSecond);
  const auto rate = [&](Counter counter, std::uint64_t& before) {
    const auto total = model.counter(counter);
    const auto since = static_cast<double>(total - std::exchange(before, total));
    return seconds > 0 ? std::llround(since / seconds) : 0;
  };
  object["arrivals_per_second"] = rate(Counter::kArrivals, before_[0]);
  object["releases_per_second"] = rate(Counter::kReleases, before_[1]);
  last_ = now;
  due_ = interval_ == 0 ? kNever : now + interval_;
  return format_ == LineFormat::kJson ? object.dump() + "\n" : as_text(object);
}

}  // namespace fake_device
