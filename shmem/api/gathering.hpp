// SPDX-License-Identifier: Apache-2.0
// What all collective calls have: their members, and checks of their buffers.
#pragma once

#include "shmem/api/check.hpp"
#include "shmem/collective/members.hpp"

namespace shmem::api {

/// Bytes of `count` blocks of so many elements of a size; ends the job if that is more than can be addressed.
std::size_t extent_of(const char* call, std::size_t count, std::size_t elements, std::size_t size);
/// Ends the job unless all members have the buffer; one of 0 bytes may be anywhere.
void check_buffer(const Members& members, const char* call, const void* address, std::size_t bytes);

Members members_of(Team& team, const Context& context);
int refuse_team(const char* call, shmem_team_t team);

/// Runs a collective of a team. `body(members)` gives a Result<void>. What the routine gives: 0, or non-zero with a
/// message.
template <typename Body>
int on_team(const char* call, shmem_team_t handle, Body body) {
  Context& context = running(call);
  Team* team = context.teams().find(handle);
  if (team == nullptr) {
    return refuse_team(call, handle);
  }
  const Result<void> ok = body(members_of(*team, context));
  return ok ? 0 : report_loudly(ok.error());
}

/// As a call of before OpenSHMEM 1.5 names its PEs.
struct ActiveSet {
  int start, log_stride, size;
  long* psync;
};
/// Ends the job if the set is none, or this PE not in it.
TeamMap checked_map(const Context& context, const char* call, const ActiveSet& set);
Members members_of(const Context& context, const char* call, const ActiveSet& set);
/// After a collective that has told something: its word is as it was.
void clear_told(const ActiveSet& set);

/// Runs a collective of an active set. Ends the job if that fails.
template <typename Body>
void on_active_set(const char* call, const ActiveSet& set, Body body) {
  const Context& context = running(call);
  const Result<void> ok = body(members_of(context, call, set));
  if (!ok) {
    end_job(context, call, ok.error().text);
  }
}

}  // namespace shmem::api
