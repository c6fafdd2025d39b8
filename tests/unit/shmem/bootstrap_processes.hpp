// SPDX-License-Identifier: Apache-2.0
// Runs PEs as processes that a test forks.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace shmem::testing {

/// Runs `body` in `pes` processes of their own, to the end, and returns their results; "" is a success. A process that
/// died or hung gives a text that says so. REQUIRES: no other threads.
std::vector<std::string> in_processes(int pes, const std::function<std::string(int pe)>& body,
                                      std::chrono::seconds limit = std::chrono::seconds{50});

}  // namespace shmem::testing
