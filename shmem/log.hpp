// SPDX-License-Identifier: Apache-2.0
// What the library tells people: lines on standard error, or to whom the program names.
#pragma once

namespace shmem {

enum class LogLevel : int { kDebug, kInfo, kWarn, kError, kFatal };

/// Gets each message whole, without an end of line. Called by any thread of the library.
using LogHandler = void (*)(int level, const char* text);

/// One message; `format` as for printf, without an end of line. Any thread.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// nullptr: standard error. These two hold for the process: a program sets them before there is a job.
void set_log_handler(LogHandler handler);
/// Messages below it are dropped; kDebug at first, since what is said of debugging has a variable of its own.
void set_log_level(LogLevel level);

}  // namespace shmem
