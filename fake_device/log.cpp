// SPDX-License-Identifier: Apache-2.0
#include "fake_device/log.hpp"

#include <cstdio>

namespace fake_device {
namespace {

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

void Log::write(LogLevel level, std::string_view text) const {
  if (wants(level)) {
    std::fprintf(stderr, "gba-fake-device: %s%.*s\n", name_of(level), static_cast<int>(text.size()), text.data());
  }
}

}  // namespace fake_device
