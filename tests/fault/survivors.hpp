// SPDX-License-Identifier: Apache-2.0
// Jobs of PEs that go on when others die (survive_pes.cpp).
#pragma once

#include <map>

#include "tests/support/pe.hpp"
#include "tests/support/text.hpp"

namespace survivors {

using test_support::count_of;
using test_support::Outcome;
using test_support::Seconds;
using test_support::Words;

constexpr Seconds kLimit{120};

inline Words command_of(Words arguments) {
  arguments.insert(arguments.begin(), {"shmem_pes", "survive"});
  return arguments;
}

inline Outcome run_pes(int pes, const std::string& gba, const Words& arguments, const Words& environment = {}) {
  return test_support::run_pes(pes, gba, command_of(arguments), environment, kLimit);
}

inline Outcome run_clean(int pes, const std::string& gba, const Words& arguments, const Words& environment = {}) {
  return test_support::run_clean(pes, gba, command_of(arguments), environment, kLimit);
}

/// The same with `each` PEs on a node; nodes are environments on this machine.
inline Outcome run_clean_nodes(int nodes, int each, const std::string& gba, const Words& arguments,
                               const Words& environment = {}) {
  const auto command = test_support::on_nodes("/ " + std::to_string(each), command_of(arguments));
  return test_support::run_clean(nodes * each, gba, command, environment, kLimit);
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
