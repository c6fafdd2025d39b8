// SPDX-License-Identifier: Apache-2.0
// Whether the other PEs are alive, and their descriptions for messages.
#pragma once

#include <optional>
#include <string>

#include "shmem/layout/job.hpp"

namespace shmem {

/// Publishes what the others need for that. Call it before a barrier of the bootstrap.
void introduce(const Job& job);

/// This process goes on without having become a PE: to the others it is as good as dead.
void withdraw(const Job& job);

/// The process is gone, or has withdrawn: one or two system calls. False for a process that is not visible from here,
/// in another container, unless the PEs meet in a folder.
bool is_dead(const Job& job, int pe);
/// The same for a process that has ended but was not yet reaped by its parent, or whose number another process has by
/// now. Seven system calls.
bool is_dead_or_zombie(const Job& job, int pe);

/// Another process has taken the place of the PE of a team with this SyncView::admissions().
bool was_replaced(const Job& job, int pe, std::uint64_t admissions);
/// The process of that PE is gone, whether or not another one has its place.
inline bool is_gone(const Job& job, int pe, std::uint64_t admissions) {
  return was_replaced(job, pe, admissions) || is_dead_or_zombie(job, pe);
}

/// The process is stopped, by a signal or a debugger. False for one that is not visible.
bool is_stopped(const Job& job, int pe);

/// "PE 3 (pid 4711 on kiwi)", with ", stopped" or ", exited with status 0" inside; "dead" if its end is unknown.
std::string describe_pe(const Job& job, int pe);

/// Why the other PEs of this node will not all come: the reason that one of them has given for the end of the job or
/// group, or else which of them is gone.
std::optional<std::string> why_in_vain(const Job& job);

}  // namespace shmem
