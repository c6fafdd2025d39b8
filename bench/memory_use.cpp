// SPDX-License-Identifier: Apache-2.0
#include "bench/memory_use.hpp"

#include <filesystem>
#include <fstream>

namespace bench {
namespace {

/// The number behind `name` in a file of /proc; 0 if there is none, e.g. because the process has ended.
double number_behind(const std::string& name, const std::string& file) {
  std::ifstream stream(file);
  double value = 0;
  for (std::string word; stream >> word;) {
    if (word == name && stream >> value) {
      return value;
    }
  }
  return 0;
}

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace

MemoryUse memory_use_of(const std::string& program) {
  MemoryUse use;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string process = entry.path();
    if (first_line(process + "/comm") != program) {
      continue;
    }
    ++use.processes;
    use.pss += number_behind("Pss:", process + "/smaps_rollup");
    use.page_tables += number_behind("VmPTE:", process + "/status");
  }
  return use;
}

double available_memory() {
  return number_behind("MemAvailable:", "/proc/meminfo");
}

}  // namespace bench
