// SPDX-License-Identifier: Apache-2.0
// Lines of output: the log on standard error, statistics on standard output.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fake_device/model.hpp"

namespace fake_device {

enum class LogLevel { kError, kWarning, kInfo, kDebug };
enum class LineFormat { kText, kJson };

/// In a line of the log: it is about no port.
inline constexpr int kNoLoggedPort = -1;

/// Used by one thread; the object is handed down from main.
class Log {
 public:
  explicit Log(LogLevel limit, LineFormat format = LineFormat::kText) : limit_(limit), format_(format) {}
  [[nodiscard]] bool wants(LogLevel level) const { return level <= limit_; }
  /// "gba-fake-device: port 3: text", or an object with time, level, port and message, if `level` is wanted.
  void write(LogLevel level, std::string_view text, int port = kNoLoggedPort) const;

 private:
  LogLevel limit_;
  LineFormat format_;
};

/// Now, as 2026-01-31T12:00:00.000Z.
std::string wall_clock();

/// Writes the line if the reader of `fd` accepts it now; otherwise the line is lost, because a reader that has stopped
/// must not make every client wait. REQUIRES: fewer bytes than a pipe accepts at once.
void write_line(int fd, std::string_view line);

/// Used by one thread.
class Stats {
 public:
  /// `interval` 0: never.
  Stats(Time interval, LineFormat format, Time now);

  /// When the next line is due; kNever.
  [[nodiscard]] Time due() const { return due_; }
  /// The line for now: totals since the start, and arrivals and releases a second since the last line.
  std::string line(const Model& model, std::size_t clients, Time now);

 private:
  const Time interval_;
  const LineFormat format_;
  Time due_;
  Time last_;
  std::array<std::uint64_t, 2> before_{};  // arrivals and releases at `last_`
};

}  // namespace fake_device
