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

constexpr Seconds kLimit{300};

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

/// With `each` PEs on a node; nodes are environments on this machine.
inline Outcome run_nodes(int nodes, int each, const std::string& gba, const Words& arguments,
                         const Words& environment = {}) {
  const auto command = test_support::on_nodes("/ " + std::to_string(each), command_of(arguments));
  return test_support::run_pes(nodes * each, gba, command, environment, kLimit);
}

inline Outcome run_clean_nodes(int nodes, int each, const std::string& gba, const Words& arguments,
                               const Words& environment = {}) {
  auto job = run_nodes(nodes, each, gba, arguments, environment);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  return job;
}

/// Expects that PE 1 of 4, which stops, is left out and does not come back. `run_for` makes the job with a timeout of
/// that many seconds.
template <typename Run>
void expect_left_out(Run run_for) {
  const auto is_left_out = [](const Outcome& job) {
    return job.exit.clean() && count_of(job.output, "hang: 0,1,2,3 -> 0,2,3, team ") == 3 &&
           count_of(job.output, "PE 1: left out: ") == 1 &&
           test_support::has_match(
               job.output, "shmemx_team_shrink of team 0 leaves out PEs that did not call it within [0-9]+ s: PE 1");
  };
  const Outcome job = test_support::with_timeouts(run_for, is_left_out);
  EXPECT_TRUE(is_left_out(job)) << job.output;
}

inline Words timeout(int seconds) {
  return {"SHMEM_BARRIER_TIMEOUT=" + std::to_string(seconds)};
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
