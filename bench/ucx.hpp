// SPDX-License-Identifier: Apache-2.0
// UCX, by its own program ucx_perftest.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/cpus.hpp"

namespace bench {

/// ucx_perftest can be started (Debian: package ucx-utils).
bool has_ucx();

/// Between which processes it is measured; if nothing else is said, two of this machine, in shared memory: no network,
/// and no copies through the kernel.
struct UcxPlace {
  std::vector<std::string> server{};  // command lines that run the one behind them where it is to run
  std::vector<std::string> client{};
  std::string address{"127.0.0.1"};  // the server's
  std::vector<std::string> environment{"UCX_TLS=posix,sysv,self", "UCX_LOG_LEVEL=fatal"};
};

/// Nanoseconds of one call in a row of `count`, of which `outstanding` are under way at once: the average. `test` is
/// one of ucx_perftest's. Throws std::runtime_error if it fails.
double measure_ucx_once(const std::string& test, std::size_t size, int count, const CpuPair& cpus,
                        const UcxPlace& place = {}, int outstanding = 1);
/// The best of several runs.
double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus);

}  // namespace bench
