// SPDX-License-Identifier: Apache-2.0
#include "fake_device/log.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

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
  std::string line = "gba-fake-device: ";
  if (level != LogLevel::kInfo) {
    line += std::string(name_of(level)) + ": ";
  }
  if (port != kNoLoggedPort) {
    line += "port " + std::to_string(port) + ": ";
  }
  return line.append(text).append("\n");
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

void Log::write(LogLevel level, std::string_view text, int port) const {
  if (wants(level)) {
    const auto shown = text.substr(0, kLongest);
    write_line(STDERR_FILENO,
               format_ == LineFormat::kJson ? json_line(level, shown, port) : text_line(level, shown, port));
  }
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

}  // namespace fake_device
