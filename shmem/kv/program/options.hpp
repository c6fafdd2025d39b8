// SPDX-License-Identifier: Apache-2.0
// The command line of kv_shuffle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/program/layout.hpp"

namespace kv_program {

/// As SHMEMX_KV_PAIR and SHMEMX_KV_BALANCED, SHMEMX_KV_COPY and SHMEMX_KV_MOVE.
enum class Planner { kPair, kBalanced };
enum class Mode { kCopy, kMove };
/// As SHMEMX_KV_PATH_AUTO and so on.
enum class Path : std::int32_t { kAuto, kDirect, kScratch };

/// Rounds until the trace has come to its end.
constexpr int kAllRounds = 0;

struct Options {
  // What is planned.
  std::string trace{};                 // path, or "" for the built-in one
  std::optional<double> from{}, to{};  // seconds of the trace
  Planner planner = Planner::kPair;
  double tolerance = 0;
  int rounds = 10;  // or kAllRounds

  // The caches.
  std::string model{};  // "" if none
  Shape shape{};
  bool blocks_by_budget = false;  // nobody said how many, and fewer than usual fit

  // How it is shuffled.
  Mode mode = Mode::kCopy;
  int cores = 4;
  Path path = Path::kAuto;
  int repeats = 10;
  bool check = false;

  // What comes of it.
  std::optional<std::string> json{};  // path; "" is standard output, which then has nothing else
  std::string report{};
  std::string import_from{}, export_to{}, generate_in{};  // folders

  [[nodiscard]] shmem::kv::Geometry geometry() const { return {shape.blocks, shape.page_size}; }
  [[nodiscard]] bool json_only() const { return json && json->empty(); }
};

/// What the command line says: go on with `options`, or print `text` and end with `exit_code` (0 after --help).
struct CommandLine {
  bool go_on;
  Options options;
  int exit_code;
  std::string text;
};
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace kv_program
