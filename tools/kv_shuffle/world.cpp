// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kv_program {

Agreement::Agreement() : word_(sizeof(std::int64_t)) {}

bool Agreement::all(bool mine) {
  const std::int64_t word = mine ? 1 : 0;
  std::memcpy(word_.get(), &word, sizeof word);
  shmem_barrier_all();
  bool all = true;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    std::int64_t theirs = 0;
    shmem_getmem(&theirs, word_.get(), sizeof theirs, pe);
    all = all && theirs == 1;
  }
  shmem_barrier_all();  // no PE changes its word before all have read it
  return all;
}

Outcome agree(Agreement& agreement, const Result<void>& mine) {
  if (agreement.all(mine.has_value())) {
    return std::nullopt;
  }
  return mine ? "" : mine.error().text;
}

Outcome failure_of_all(const std::string& text) {
  return shmem_my_pe() == 0 ? text : "";
}

void say(const std::string& line) {
  if (shmem_my_pe() == 0) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
}

void complain(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

namespace {

constexpr std::chrono::milliseconds kBetweenLines{100};
constexpr std::size_t kCells = 30;

/// oshrun connects PEs by pipes, and sets the variable if its own standard error is a terminal.
bool ends_at_terminal() {
  return ::isatty(STDERR_FILENO) != 0 || std::getenv("OSHRUN_STDERR_TERMINAL") != nullptr;
}

std::string progress_line(double share, const std::string& text) {
  share = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * kCells);
  return fmt::format("[{}{}] {:3.0f} %  {}", std::string(full, '#'), std::string(kCells - full, '.'), 100 * share,
                     text);
}

}  // namespace

Progress::Progress() : is_shown_(shmem_my_pe() == 0 && ends_at_terminal()) {}

Progress::~Progress() {
  if (has_line_) {
    std::fputs("\r\033[K", stderr);
  }
}

void Progress::show(double share, const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_shown_ || (has_line_ && now - last_ < kBetweenLines)) {
    return;
  }
  last_ = now;
  has_line_ = true;
  std::fputs(("\r\033[K" + progress_line(share, text)).c_str(), stderr);
}

}  // namespace kv_program
