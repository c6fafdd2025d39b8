// SPDX-License-Identifier: Apache-2.0
// PEs as processes forked from a test.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace shmem::testing {

/// Runs `body` in `pes` processes of their own, to the end, and returns what each returned: "" where all is well. What
/// died or hung says so instead. REQUIRES: no other threads.
std::vector<std::string> in_processes(int pes, const std::function<std::string(int pe)>& body,
                                      std::chrono::seconds limit = std::chrono::seconds{50});

}  // namespace shmem::testing
