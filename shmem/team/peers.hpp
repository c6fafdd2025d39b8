// SPDX-License-Identifier: Apache-2.0
// Do the other PEs still live, and who are they, for messages?
#pragma once

#include <string>

#include "shmem/job.hpp"

namespace shmem {

/// Writes down what the others need for that. Before a barrier of the bootstrap.
void introduce(const Job& job);

/// The process is gone: one or two system calls. False of a process that cannot be seen from here, in another
/// container.
bool is_dead(const Job& job, int pe);
/// The same of one that has ended and whose parent has not asked for its status yet. Four system calls.
bool is_dead_or_zombie(const Job& job, int pe);

/// "PE 3 (pid 4711 on kiwi)" or "PE 3 (pid 4711 on kiwi, dead)".
std::string describe_pe(const Job& job, int pe);

}  // namespace shmem
