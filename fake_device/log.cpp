// SPDX-License-Identifier: Apache-2.0
#include "fake_device/log.hpp"

#include <poll.h>
#include <unistd.h>

#include <string>

namespace fake_device {
namespace {

// With the rest of the line less than what a pipe takes whole.
constexpr std::size_t kLongest = 2048;

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error: ";
    case LogLevel::kWarning:
      return "warning: ";
    case LogLevel::kInfo:
      return "";
    case LogLevel::kDebug:
      return "debug: ";
  }
  return "";
}

}  // namespace

// Whoever reads standard error may have stopped: then a line is lost, rather than every client kept waiting.
void Log::write(LogLevel level, std::string_view text) const {
  pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (!wants(level) || ::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
    return;
  }
  const std::string line =
      std::string("gba-fake-device: ") + name_of(level) + std::string(text.substr(0, kLongest)) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace fake_device
