// SPDX-License-Identifier: Apache-2.0
// Shared by tune_barrier and tune_collective.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "shmem/version.hpp"

namespace bench {

/// Writes to the file, or to standard output if it is "". Returns the exit code for main().
inline int write_table(const std::string& text, const std::string& file, const char* variable) {
  if (file.empty()) {
    std::cout << text << std::flush;
    return std::cout ? 0 : 1;
  }
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) {
    std::fprintf(stderr, "cannot write %s\n", file.c_str());
    return 1;
  }
  std::printf("Written: %s. To use it: export %s=%s (shmem_info shows it)\n", file.c_str(), variable,
              std::filesystem::absolute(file).c_str());
  return 0;
}

/// A tuning program: `make` returns the text of the table for these numbers of PEs. The environment variable `variable`
/// names the table's file.
struct Tuner {
  const char* name;
  const char* description;
  const char* variable;
  std::vector<int> sizes;  // unless others are given
  std::function<std::string(const std::vector<int>& sizes)> make;
};

/// Returns the exit code for main().
inline int run_tuner(const Tuner& tuner, int argc, char** argv) {
  std::vector<int> sizes = tuner.sizes;
  if (const int own = std::max(2, own_processors()); std::find(sizes.begin(), sizes.end(), own) == sizes.end()) {
    sizes.push_back(own);
  }
  std::string file;
  return run_program({.name = tuner.name,
                      .description = tuner.description,
                      .options = {{"PES", &sizes, "numbers of PEs to measure", {{2, 16384}}},
                                  {"-o,--output", &file, "the file to write; standard output if there is none"}},
                      .run =
                          [&] {
                            std::sort(sizes.begin(), sizes.end());
                            sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
                            return write_table(tuner.make(sizes), file, tuner.variable);
                          },
                      .version = shmem::kVersion},
                     argc, argv);
}

/// The comment in the table on its origin.
inline std::string measured_by(const char* name) {
  return std::string("Measured by ") + name + " on " + std::to_string(own_processors()) + " processors.";
}

}  // namespace bench
