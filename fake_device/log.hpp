// SPDX-License-Identifier: Apache-2.0
// Lines on standard error.
#pragma once

#include <string>
#include <string_view>

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

/// Writes it if whoever reads `fd` takes it now; otherwise it is lost: a reader that has stopped must not keep every
/// client waiting. Less than what a pipe takes whole.
void write_line(int fd, std::string_view line);

}  // namespace fake_device
