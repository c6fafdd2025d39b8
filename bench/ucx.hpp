// SPDX-License-Identifier: Apache-2.0
// UCX's shared memory, by its own program ucx_perftest.
#pragma once

#include <cstddef>
#include <string>

#include "bench/cpus.hpp"

namespace bench {

/// ucx_perftest can be started (Debian: package ucx-utils).
bool has_ucx();

/// Nanoseconds of one call in a row of `count`: the average of the best of several runs. `test` is one of
/// ucx_perftest's. Throws std::runtime_error if it fails.
double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus);

}  // namespace bench
