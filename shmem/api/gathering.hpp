// SPDX-License-Identifier: Apache-2.0
// Common to all collective calls: their members, and checks of their buffers.
#pragma once

#include "shmem/api/check.hpp"
#include "shmem/collective/members.hpp"

namespace shmem::api {

/// Bytes of `count` blocks of `elements` elements of `size` bytes; ends the job if that overflows.
std::size_t extent_of(const char* call, std::size_t count, std::size_t elements, std::size_t size);
/// Ends the job unless all members have the buffer; an empty buffer may be anywhere.
void check_buffer(const Members& members, const char* call, const void* address, std::size_t bytes);

Members members_of(Team& team, const Runtime& runtime);
int refuse_team(const char* call, shmem_team_t team);

/// Runs a collective of a team. `body(members)` returns a Result<void>. Returns what the routine returns: 0, or
/// non-zero with a message.
template <typename Body>
int on_team(const char* call, shmem_team_t handle, Body body) {
  Runtime& runtime = running(call);
  Team* team = runtime.teams().find(handle);
  if (team == nullptr) {
    return refuse_team(call, handle);
  }
  const Result<void> ok = body(members_of(*team, runtime));
  return ok ? 0 : report_loudly(ok.error());
}

/// A sync of the world, or of all cores of all PEs. Ends the job on failure.
void sync_world(const char* call);

/// How a call from before OpenSHMEM 1.5 names its PEs.
struct ActiveSet {
  int start, log_stride, size;
  long* psync;
};
/// Nothing, with a warning, if this PE is not in the set. Ends the job if the set is invalid.
std::optional<Members> members_of(const Runtime& runtime, const char* call, const ActiveSet& set);
/// After a collective that exchanged numbers: resets their word.
void clear_number(const ActiveSet& set);

/// Runs a collective of an active set; false if this PE is not in it. Ends the job on failure.
template <typename Body>
bool on_active_set(const char* call, const ActiveSet& set, Body body) {
  const Runtime& runtime = running(call);
  const std::optional<Members> members = members_of(runtime, call, set);
  const Result<void> ok = members ? body(*members) : Result<void>{};
  if (!ok) {
    end_job(runtime, call, ok.error().text);
  }
  return members.has_value();
}

}  // namespace shmem::api
