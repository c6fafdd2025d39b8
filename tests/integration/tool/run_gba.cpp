// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/tool/run_gba.hpp"

#include <utility>

namespace tool_test {

test_support::Outcome gba(std::vector<std::string> arguments, std::vector<std::string> environment) {
  std::vector<std::string> line{"/usr/bin/env", "-u", "GBA_DEVICE", "-u", "GBA_PCI_ID"};
  line.insert(line.end(), environment.begin(), environment.end());
  line.push_back(test_support::program("gba"));
  line.insert(line.end(), arguments.begin(), arguments.end());
  return test_support::run(line, {}, test_support::Seconds{300});
}

Json gba_json(std::vector<std::string> arguments, const std::vector<std::string>& environment, int code) {
  arguments.emplace_back("--json");
  const auto outcome = gba(std::move(arguments), environment);
  EXPECT_EQ(outcome.exit.code, code) << outcome.output;
  auto json = Json::parse_or_null(outcome.output);
  EXPECT_TRUE(json.is_object()) << outcome.output;
  EXPECT_EQ(json.value("schema", 0), 1) << outcome.output;
  return json;
}

}  // namespace tool_test
