// SPDX-License-Identifier: Apache-2.0
// Measurements of UCX by its own program ucx_perftest.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure.hpp"

namespace bench {

/// Whether ucx_perftest can be started (Debian: package ucx-utils). Prints a message if not.
bool has_ucx();

/// The processes between which it measures. By default two on this machine, through shared memory, without a network
/// and without copies by the kernel.
struct UcxPlace {
  std::vector<std::string> server{};  // commands that run the one after them in the right place
  std::vector<std::string> client{};
  std::string address{"127.0.0.1"};  // the server's
  std::vector<std::string> environment{"UCX_TLS=posix,sysv,self", "UCX_LOG_LEVEL=fatal"};
};

/// The average nanoseconds of `count` consecutive calls, `outstanding` of them at once. `test` is one of ucx_perftest's
/// tests. Throws std::runtime_error if it fails.
double measure_ucx_once(const std::string& test, std::size_t size, int count, const CpuPair& cpus,
                        const UcxPlace& place = {}, int outstanding = 1);
/// The best of several runs.
double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus);

}  // namespace bench
