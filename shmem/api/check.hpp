// SPDX-License-Identifier: Apache-2.0
// SHMEM_DEBUG: where calls are looked at (checking/checker.hpp). Without it, each of these is one comparison.
#pragma once

#include "shmem/api/entry.hpp"
#include "shmem/collective/members.hpp"

namespace shmem::api {

/// Of a collective call, what all members give alike.
struct CheckedArgument {
  const char* name;
  std::size_t value;
};

/// The buffers of a collective call.
struct CheckedBuffers {
  CheckedBuffer dest, source;
  bool may_be_in_place;  // section 9.11: reductions and broadcasts; a dest of others is read and written by all
};

// What follows ends the job, if there is a checker and it finds something. REQUIRES: context.checker() != nullptr.
void check_team_call(const Context& context, const Team& team, const char* call, const std::string& arguments = "");
void check_members_call(const Members& members, const char* call, const CheckedBuffers* buffers,
                        std::initializer_list<CheckedArgument> arguments);
/// A call that is collective, but does not wait.
void announce_team_call(const Context& context, const Team& team, const char* call);

/// Before a collective of a team, or an active set. Once its buffers are known to be symmetric.
inline void check_call(const Members& members, const char* call, const CheckedBuffers& buffers,
                       std::initializer_list<CheckedArgument> arguments) {
  if (Context::current()->checker() != nullptr) [[unlikely]] {
    check_members_call(members, call, &buffers, arguments);
  }
}
/// The same without arguments.
inline void check_call(const Context& context, const Team& team, const char* call) {
  if (context.checker() != nullptr) [[unlikely]] {
    check_team_call(context, team, call);
  }
}

}  // namespace shmem::api
