// SPDX-License-Identifier: Apache-2.0
// What programs that tune have in common.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "bench/jobs.hpp"

namespace bench {

/// Numbers of PEs: those and one for each processor.
inline std::vector<int> usual_sizes(std::vector<int> sizes) {
  sizes.push_back(std::max(2, own_processors()));
  return sizes;
}

inline void sort_sizes(std::vector<int>& sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
}

/// To the file, or to standard output if it is "". What main() returns.
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

}  // namespace bench
