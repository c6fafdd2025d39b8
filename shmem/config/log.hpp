// SPDX-License-Identifier: Apache-2.0
// The library's messages to users: lines on standard error, or calls of the program's handler.
#pragma once

namespace shmem {

enum class LogLevel : int { kDebug, kInfo, kWarn, kError, kFatal };

/// Gets one message at a time, without an end of line. Called by any thread of the library.
using LogHandler = void (*)(int level, const char* text);

/// One message; `format` as for printf, without an end of line. Any thread.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// nullptr: standard error. These two apply to the process: a program calls them before the job starts.
void set_log_handler(LogHandler handler);
/// Messages below it are dropped; initially kDebug, because SHMEM_DEBUG already controls debug messages.
void set_log_level(LogLevel level);

}  // namespace shmem
