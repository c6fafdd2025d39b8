// SPDX-License-Identifier: Apache-2.0
// The number of repetitions of a test: few in CI, the full count in a soak (scripts/soak.sh sets GBA_SOAK).
#pragma once

#include <cstdlib>

namespace test_support {

inline int repeats(int in_ci, int in_soak) {
  return std::getenv("GBA_SOAK") != nullptr ? in_soak : in_ci;
}

}  // namespace test_support
