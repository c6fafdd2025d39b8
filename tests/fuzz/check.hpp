// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

/// Aborts with the text `claim` if it does not hold.
inline void check(bool holds, const char* claim) {
  if (!holds) {
    std::fprintf(stderr, "fuzz: does not hold: %s\n", claim);
    std::abort();
  }
}

}  // namespace fuzz
