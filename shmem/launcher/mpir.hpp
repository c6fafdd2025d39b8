// SPDX-License-Identifier: Apache-2.0
// MPIR, the interface of parallel debuggers: they run or attach to oshrun, and read from it where the PEs are. For jobs
// on one node.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shmem::launcher {

struct MpirProcess {
  std::string host, program;
  pid_t pid;
};

/// Publishes the PEs, in the order of their numbers, and stops for a debugger if one has asked for that.
void publish_to_debuggers(std::vector<MpirProcess> pes);

}  // namespace shmem::launcher
