// SPDX-License-Identifier: Apache-2.0
// Starts kv_shuffle as a user does.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace kv_jobs {

constexpr test_support::Seconds kLimit{300};  // only against a job that never ends

inline std::vector<std::string> command(int pes, const std::string& gba, const std::vector<std::string>& arguments) {
  std::vector<std::string> line{test_support::program("oshrun"),    "-n", std::to_string(pes), "--gba", gba,
                                test_support::program("kv_shuffle")};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

inline test_support::Outcome shuffle(int pes, const std::string& gba, const std::vector<std::string>& arguments) {
  return test_support::run(command(pes, gba, arguments), {}, kLimit);
}

inline void expect_failure(const test_support::Outcome& outcome, int code, const std::string& text) {
  EXPECT_EQ(outcome.exit.signal, 0) << outcome.output;
  EXPECT_EQ(outcome.exit.code, code) << outcome.output;
  EXPECT_THAT(outcome.output, testing::HasSubstr(text));
  EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr("PASS")));
}

}  // namespace kv_jobs
