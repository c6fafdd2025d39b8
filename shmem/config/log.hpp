// SPDX-License-Identifier: Apache-2.0
// The library's messages to users: lines on standard error, or calls of the program's handler.
#pragma once

#include <string>

namespace shmem {

enum class LogLevel : int { kDebug, kInfo, kWarn, kError, kFatal };

/// Gets one message at a time, without an end of line. Called by any thread of the library.
using LogHandler = void (*)(int level, const char* text);

/// One message; `format` as for printf, without an end of line. Any thread.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// A line that SHMEM_INFO asks for.
struct InfoLine {
  const char* event;  // its kind, in JSON: "barrier", "statistics", ...
  int team;           // the number of the team
  std::string text;   // without "shmem: "
};
/// Logs it as text, or, with SHMEM_INFO=json, as a JSON object. Any thread.
void log_info(bool as_json, const InfoLine& line);

/// nullptr: standard error. These two apply to the process: a program calls them before the job starts.
void set_log_handler(LogHandler handler);
bool has_log_handler();
/// Messages below it are dropped; initially kDebug, because SHMEM_DEBUG already controls debug messages.
void set_log_level(LogLevel level);

}  // namespace shmem
