// SPDX-License-Identifier: Apache-2.0
// Lines on standard error.
#pragma once

#include <string_view>

namespace fake_device {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

/// Writes "gba-fake-device: text" if `level` is wanted. Used by one thread; the object is handed down from main.
class Log {
 public:
  explicit Log(LogLevel limit) : limit_(limit) {}
  [[nodiscard]] bool wants(LogLevel level) const { return level <= limit_; }
  void write(LogLevel level, std::string_view text) const;

 private:
  LogLevel limit_;
};

}  // namespace fake_device
