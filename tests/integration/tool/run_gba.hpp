// SPDX-License-Identifier: Apache-2.0
// Runs the gba command to its end.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace tool_test {

using Json = nlohmann::json;

/// The program sees `environment` only, not the environment of the tests.
inline test_support::Outcome gba(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  std::vector<std::string> line{"/usr/bin/env", "-u", "GBA_DEVICE", "-u", "GBA_PCI_ID"};
  line.insert(line.end(), environment.begin(), environment.end());
  line.push_back(test_support::program("gba"));
  line.insert(line.end(), arguments.begin(), arguments.end());
  return test_support::run(line, {}, test_support::Seconds{60});
}

/// The parsed output of gba --json. The test fails if it is not JSON or the exit code is not `code`.
inline Json gba_json(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
                     int code = 0) {
  arguments.emplace_back("--json");
  const auto outcome = gba(std::move(arguments), environment);
  EXPECT_EQ(outcome.exit.code, code) << outcome.output;
  auto json = Json::parse(outcome.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << outcome.output;
  EXPECT_EQ(json.value("schema", 0), 1) << outcome.output;
  return json;
}

}  // namespace tool_test
