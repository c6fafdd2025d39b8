// SPDX-License-Identifier: Apache-2.0
// MPIR, the interface of parallel debuggers: they run or attach to oshrun, and read from it where the PEs are.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shmem::launcher {

struct MpirProcess {
  std::string host, program;
  pid_t pid;
};

/// True if a debugger runs this oshrun and wants the PEs held until publish_to_debuggers() has returned.
bool is_being_debugged();
/// Publishes the PEs, in the order of their numbers. If a debugger has asked for it, stops until it goes on.
void publish_to_debuggers(std::vector<MpirProcess> pes);

}  // namespace shmem::launcher
