// SPDX-License-Identifier: Apache-2.0
// What oshrun tells its user.
#pragma once

#include <string>

namespace shmem::launcher {

/// "oshrun: TEXT" as one line on standard error, in one write: lines of PEs do not get into it.
void say(const std::string& text);

/// "was killed by signal 9 (Killed)", "exited with status 1": what waitpid() returned.
std::string exit_text(int wait_status);
/// The status as a shell gives it: 128 + the number of the signal.
int exit_status(int wait_status);

}  // namespace shmem::launcher
