// SPDX-License-Identifier: Apache-2.0
// Shared by tune_barrier and tune_collective.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "shmem/version.hpp"

namespace bench {

/// A tuning program: `make` returns the text of the table for these numbers of PEs, with a comment on its origin. The
/// environment variable `variable` names the table's file.
struct Tuner {
  const char* name;
  const char* description;
  const char* variable;
  std::vector<int> sizes;  // unless others are given
  std::function<std::string(const std::vector<int>& sizes, const std::string& comment)> make;
};

/// Writes to the file, or to standard output if it is "". Returns the exit code for main().
inline int write_table(const std::string& text, const std::string& file, const char* variable) {
  if (file.empty()) {
    std::cout << text << std::flush;
    return std::cout ? 0 : 1;
  }
  write_file(file, text);
  std::printf("Written: %s. To use it: export %s=%s (shmem_info shows it)\n", file.c_str(), variable,
              std::filesystem::absolute(file).c_str());
  return 0;
}

/// Returns the exit code for main().
inline int run_tuner(const Tuner& tuner, int argc, char** argv) {
  std::vector<int> sizes = tuner.sizes;
  if (const int own = std::max(2, own_processors()); std::ranges::find(sizes, own) == sizes.end()) {
    sizes.push_back(own);
  }
  std::string file;
  const auto tune = [&] {
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    const auto comment =
        "Measured by " + std::string(tuner.name) + " on " + std::to_string(own_processors()) + " processors.";
    return write_table(tuner.make(sizes, comment), file, tuner.variable);
  };
  return run_program({.name = tuner.name,
                      .description = tuner.description,
                      .options = {{"PES", &sizes, "numbers of PEs to measure", {{2, 16384}}},
                                  {"-o,--output", &file, "the file to write; standard output if there is none"}},
                      .run = tune,
                      .version = shmem::kVersion},
                     argc, argv);
}

}  // namespace bench
