// SPDX-License-Identifier: Apache-2.0
// Processes that the PEs have started and left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace shmem::launcher {

/// The children of this process, those that have exited included.
std::vector<pid_t> children();

/// Ends all children but `kept`, and their children, which become ours (REQUIRES: this process is a subreaper):
/// SIGTERM, and SIGKILL for what is there after `grace`. Returns how many there were.
int end_leftovers(const std::vector<pid_t>& kept, std::chrono::milliseconds grace);

}  // namespace shmem::launcher
