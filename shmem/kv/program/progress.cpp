// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "shmem.h"

namespace kv_program {
namespace {

constexpr std::chrono::milliseconds kBetween{100};
constexpr std::size_t kCells = 30;

/// oshrun takes what PEs print through pipes, and says so where a terminal is behind them.
bool ends_at_terminal() {
  return ::isatty(STDERR_FILENO) != 0 || std::getenv("OSHRUN_STDERR_TERMINAL") != nullptr;
}

}  // namespace

std::string progress_line(double share, const std::string& text) {
  share = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * kCells);
  char percent[8];
  std::snprintf(percent, sizeof percent, "%3.0f %%", 100 * share);
  return "[" + std::string(full, '#') + std::string(kCells - full, '.') + "] " + percent + "  " + text;
}

Progress::Progress() : is_shown_(shmem_my_pe() == 0 && ends_at_terminal()) {}

Progress::~Progress() {
  if (has_line_) {
    std::fputs("\r\033[K", stderr);
  }
}

void Progress::show(double share, const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_shown_ || (has_line_ && now - last_ < kBetween)) {
    return;
  }
  last_ = now;
  has_line_ = true;
  std::fputs(("\r\033[K" + progress_line(share, text)).c_str(), stderr);
}

}  // namespace kv_program
