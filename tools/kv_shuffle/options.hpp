// SPDX-License-Identifier: Apache-2.0
// The command line of kv_shuffle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/kv_shuffle/caches.hpp"
#include "tools/kv_shuffle/trace.hpp"

namespace kv_program {

/// The values of SHMEMX_KV_PAIR, ...; SHMEMX_KV_COPY, ...; SHMEMX_KV_PATH_AUTO, ...
enum class Planner : std::int32_t { kPair, kBalanced };
enum class Mode : std::int32_t { kCopy, kMove };
enum class Path : std::int32_t { kAuto, kDirect, kScratch };

/// Rounds until the end of the trace.
constexpr int kAllRounds = 0;

struct Options {
  // The plan.
  std::string trace{};                 // path, or "" for the built-in one
  std::optional<double> from{}, to{};  // seconds of the trace
  Planner planner = Planner::kPair;
  double tolerance = 0;
  int rounds = 10;  // or kAllRounds

  // The caches.
  std::string model{};  // "" without --model
  Shape shape{};
  bool blocks_by_budget = false;  // --blocks is not given, and fewer than the default fit

  // The shuffles.
  Mode mode = Mode::kCopy;
  int cores = 4;
  Path path = Path::kAuto;
  int repeats = 10;
  bool check = false;

  // The results.
  std::optional<std::string> json{};  // path; "" is standard output, which then contains nothing else
  std::string report{};
  std::string import_from{}, export_to{}, generate_in{};  // folders

  [[nodiscard]] Geometry geometry() const { return {.blocks = shape.blocks, .page = shape.page_size}; }
  [[nodiscard]] bool json_only() const { return json && json->empty(); }
};

/// Either run with `options`, or print `text` and end with `exit_code` (0 after --help).
struct CommandLine {
  bool go_on;
  Options options{};
  int exit_code = 0;
  std::string text{};
};
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace kv_program
