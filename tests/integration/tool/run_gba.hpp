// SPDX-License-Identifier: Apache-2.0
// Runs the gba command to its end.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/json.hpp"
#include "tests/support/process.hpp"

namespace tool_test {

using test_support::Json;

/// The program sees `environment` only, not the environment of the tests.
test_support::Outcome gba(std::vector<std::string> arguments, std::vector<std::string> environment = {});

/// The parsed output of gba --json. The test fails if it is not JSON or the exit code is not `code`.
Json gba_json(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}, int code = 0);

}  // namespace tool_test
