// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/log.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "base/json_text.hpp"
#include "shmem/config/build.hpp"
#include "shmem/config/process_state.hpp"

namespace shmem {

namespace {

std::string format_text(const char* format, va_list arguments) {
  std::array<char, 512> room{};
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(room.data(), room.size(), format, arguments);
  std::string text(room.data());
  if (length >= static_cast<int>(room.size())) {
    text.resize(static_cast<std::size_t>(length) + 1);
    std::vsnprintf(text.data(), text.size(), format, again);
    text.pop_back();
  }
  va_end(again);
  return text;
}

}  // namespace

void log(LogLevel level, const char* format, ...) {
  const ProcessState& state = *kvexchange_process_state_1();
  if (level < state.log_level.load(std::memory_order_relaxed)) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_text(format, arguments);
  va_end(arguments);
  if (const LogHandler handler = state.log_handler.load(std::memory_order_relaxed)) {
    handler(static_cast<int>(level), text.c_str());
    return;
  }
  // With one call, so that lines of different PEs do not mix.
  text += '\n';
  std::fputs(text.c_str(), stderr);
}

void log_info(bool as_json, const InfoLine& line) {
  if (as_json) {
    log(LogLevel::kInfo, R"({"schema":%d,"event":"%s","team":%d,"text":%s})", kJsonSchema, line.event, line.team,
        base::json_text(line.text).c_str());
  } else {
    log(LogLevel::kInfo, "shmem: %s", line.text.c_str());
  }
}

void set_log_handler(LogHandler handler) {
  kvexchange_process_state_1()->log_handler.store(handler, std::memory_order_relaxed);
}

bool has_log_handler() {
  return kvexchange_process_state_1()->log_handler.load(std::memory_order_relaxed) != nullptr;
}

void set_log_level(LogLevel level) {
  kvexchange_process_state_1()->log_level.store(level, std::memory_order_relaxed);
}

}  // namespace shmem
