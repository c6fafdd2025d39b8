// SPDX-License-Identifier: Apache-2.0
// The command line of kv_shuffle.
#pragma once

#include <string>

#include "shmem/kv/planner.hpp"
#include "shmemx.h"

namespace kv_program {

struct Options {
  std::string trace;  // path, or "" for the built-in one
  int cores = 4;
  int rounds = 10;
  int repeats = 10;
  bool check = false;
  shmemx_kv_shape_t shape{160, 8, 64, 128, 1};

  [[nodiscard]] shmem::kv::Geometry geometry() const { return {shape.blocks, shape.page_size}; }
  [[nodiscard]] std::size_t block_bytes() const {
    return static_cast<std::size_t>(shape.kv_heads * shape.page_size * shape.head_dim * shape.element_size);
  }
  [[nodiscard]] std::size_t cache_bytes() const { return static_cast<std::size_t>(shape.blocks) * block_bytes(); }
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
