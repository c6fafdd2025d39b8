// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/options.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

namespace kv_program {
namespace {

// A cache of more than 1 TiB is a slip of the finger; below that no product overflows.
constexpr std::int64_t kMostBlocks = 1 << 20;
constexpr std::int64_t kMostInDimension = 1 << 10;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

void add_options(CLI::App& app, Options& options) {
  shmemx_kv_shape_t& shape = options.shape;
  app.add_option("--trace", options.trace, "request trace: Mooncake JSONL or Azure CSV (default: built in)");
  app.add_option("--cores", options.cores, "threads of each PE that copy; even")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "windows of the trace to plan and shuffle")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "shuffles of each round, for measuring")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--check", options.check, "compare every byte of every cache with what it must be");
  app.add_option("--blocks", shape.blocks, "blocks in the K cache, and in the V cache, of each PE")
      ->check(CLI::Range(std::int64_t{2}, kMostBlocks))
      ->capture_default_str();
  app.add_option("--heads", shape.kv_heads, "KV heads")
      ->check(CLI::Range(std::int64_t{1}, kMostInDimension))
      ->capture_default_str();
  app.add_option("--page", shape.page_size, "tokens in a block")
      ->check(CLI::Range(std::int64_t{2}, kMostInDimension))
      ->capture_default_str();
  app.add_option("--head-dim", shape.head_dim, "elements of one head for one token")
      ->check(CLI::Range(std::int64_t{1}, kMostInDimension))
      ->capture_default_str();
  app.add_option("--element-size", shape.element_size, "bytes of an element")
      ->check(CLI::IsMember({1, 2, 4}))
      ->capture_default_str();
}

std::string wrong_together(const Options& options) {
  if (options.cores % 2 != 0) {
    return "--cores " + std::to_string(options.cores) + " is odd: half of the cores copy K and half V";
  }
  if (static_cast<std::int64_t>(options.block_bytes()) > kMostBytes / options.shape.blocks) {
    return "a cache of " + std::to_string(options.shape.blocks) + " blocks of " +
           std::to_string(options.block_bytes()) + " bytes is more than 1 TiB";
  }
  return "";
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app{
      "Plans how to balance the KV caches of several PEs for a trace of requests, moves the blocks, and says how\n"
      "fast. Start it with oshrun -n PES [--gba fake] kv_shuffle ...",
      "kv_shuffle"};
  CommandLine line{true, {}, 0, ""};
  add_options(app, line.options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const bool is_failure = app.exit(error, text, text) != 0;
    return {false, {}, is_failure ? 2 : 0, text.str()};
  }
  if (const std::string wrong = wrong_together(line.options); !wrong.empty()) {
    return {false, {}, 2, wrong + "\n"};
  }
  return line;
}

}  // namespace kv_program
