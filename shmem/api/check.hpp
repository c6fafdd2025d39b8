// SPDX-License-Identifier: Apache-2.0
// SHMEM_DEBUG: where calls are checked (checking/checker.hpp). Without it each check is one comparison.
#pragma once

#include "shmem/api/entry.hpp"
#include "shmem/collective/members.hpp"

namespace shmem::api {

/// The arguments of a collective call that must be equal on all members.
struct CheckedArgument {
  const char* name;
  std::size_t value;
};

/// The buffers of a collective call.
struct CheckedBuffers {
  CheckedBuffer dest, source;
  bool may_be_in_place;  // section 9.10: reductions and broadcasts; a dest of others is read and written by all
};

// The following end the job if a check fails. REQUIRES: runtime.checker() != nullptr.
void check_team_call(const Runtime& runtime, const Team& team, const char* call, const std::string& arguments = "");
void check_members_call(const Members& members, const char* call, const CheckedBuffers* buffers,
                        std::initializer_list<CheckedArgument> arguments);
/// With SHMEM_INFO counts the call, with SHMEM_DEBUG checks it.
void watch_members_call(const Members& members, const char* call, const CheckedBuffers& buffers,
                        std::initializer_list<CheckedArgument> arguments);
/// For a call that is collective, but does not wait.
void announce_team_call(const Runtime& runtime, const Team& team, const char* call);

/// Before a collective of a team or an active set, once its buffers are known to be symmetric.
inline void check_call(const Members& members, const char* call, const CheckedBuffers& buffers,
                       std::initializer_list<CheckedArgument> arguments) {
  if (Runtime::current()->watches_calls()) [[unlikely]] {
    watch_members_call(members, call, buffers, arguments);
  }
}
/// The same without arguments.
inline void check_call(const Runtime& runtime, const Team& team, const char* call) {
  if (runtime.checker() != nullptr) [[unlikely]] {
    check_team_call(runtime, team, call);
  }
}

}  // namespace shmem::api
