// SPDX-License-Identifier: Apache-2.0
// oshrun's command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace shmem::launcher {

struct Options {
  int pes = 1;
  std::string gba;  // "fake", "off", a path; empty: what the environment says
  std::optional<std::chrono::milliseconds> timeout;
  std::vector<std::pair<std::string, std::string>> exports;  // of -x
  std::vector<std::string> program;                          // with its arguments; never empty
};

/// Why there is nothing to run: the user asked for help, or for something that cannot be.
struct Refusal {
  int status;  // 0: help, 2: wrong usage
  std::string text;
};

constexpr int kUsageStatus = 2;

tl::expected<Options, Refusal> parse_options(int argc, const char* const* argv);

}  // namespace shmem::launcher
