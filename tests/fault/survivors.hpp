// SPDX-License-Identifier: Apache-2.0
// Jobs of survive_pes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/job.hpp"
#include "tests/support/text.hpp"

namespace survivors {

using test_support::Seconds;

inline test_support::Outcome run_pes(int pes, const std::string& gba, std::vector<std::string> arguments,
                                     const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), test_support::test_program("survive_pes"));
  return test_support::run(test_support::oshrun(pes, gba, arguments), environment, Seconds{120});
}

inline int count_of(const std::string& output, const std::string& part) {
  int count = 0;
  for (std::size_t at = output.find(part); at != std::string::npos; at = output.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// The same with `each` PEs on a node; nodes are environments on this machine.
inline test_support::Outcome run_nodes(int nodes, int each, const std::string& gba, std::vector<std::string> arguments,
                                       const std::vector<std::string>& environment = {}) {
  const std::string line =
      "export SHMEM_HOST_ID=node$((OSHRUN_RANK / " + std::to_string(each) + R"()); exec "$0" "$@")";
  std::vector<std::string> command{"/bin/sh", "-c", line, test_support::test_program("survive_pes")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return test_support::run(test_support::oshrun(nodes * each, gba, command), environment, Seconds{120});
}

/// Each line of the old members is followed by the same new members and team on all PEs that say it, those that died
/// later, too.
inline void expect_agreement(const std::string& output) {
  std::map<std::string, std::string> news;
  for (const auto& line :
       test_support::all_matches(output, R"(race: ([0-9,]+) -> ([0-9,]+, team \d+), failed ([0-9,]+))")) {
    const auto [known, is_first] = news.emplace(line[1], line[2] + " without " + line[3]);
    EXPECT_EQ(known->second, line[2] + " without " + line[3]) << output;
  }
}

}  // namespace survivors
