// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench/scale/measured.hpp"

namespace scale {

/// Barriers of every algorithm on this machine, and of Open MPI where it is installed. Throws std::runtime_error.
std::vector<Measured> measure(const std::vector<int>& sizes);

}  // namespace scale
