// SPDX-License-Identifier: Apache-2.0
// UCX, by its own program ucx_perftest.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure.hpp"

namespace bench {

/// Whether ucx_perftest can be started (Debian: package ucx-utils). Prints a message if not.
bool has_ucx();

/// The processes that it measures between. By default two on this machine, in shared memory: no network, and no copies
/// through the kernel.
struct UcxPlace {
  std::vector<std::string> server{};  // commands that run the one after them in the right place
  std::vector<std::string> client{};
  std::string address{"127.0.0.1"};  // the server's
  std::vector<std::string> environment{"UCX_TLS=posix,sysv,self", "UCX_LOG_LEVEL=fatal"};
};

/// Nanoseconds of one of `count` calls in a row, `outstanding` of them at once: the average. `test` is
/// one of ucx_perftest's. Throws std::runtime_error if it fails.
double measure_ucx_once(const std::string& test, std::size_t size, int count, const CpuPair& cpus,
                        const UcxPlace& place = {}, int outstanding = 1);
/// The best of several runs.
double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus);

}  // namespace bench
