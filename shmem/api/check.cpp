// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/check.hpp"

#include "shmem/api/kernel_core.hpp"

namespace shmem::api {
namespace {

void end_if(const Context& context, const char* call, const Problem& problem) {
  if (problem) {
    context.end_job_of(call, *problem);
  }
}

static_assert(SHMEM_THREAD_SINGLE == 0 && SHMEM_THREAD_FUNNELED == 1 && SHMEM_THREAD_SERIALIZED == 2 &&
                  SHMEM_THREAD_MULTIPLE == 3,
              "as in thread_rule()");

/// The library's own threads may always call.
void check_thread(const Context& context, const char* call) {
  if (current_core() == nullptr && !Stream::is_own_thread()) {
    end_if(context, call, context.checker()->thread(thread_rule(context.thread_level())));
  }
}

CallSet set_of(const Team& team) {
  return {team.slot(), team.map_here()};
}

}  // namespace

void check_symmetric(const Context& context, const char* call, const void* mine, std::size_t bytes) {
  check_thread(context, call);
  end_if(context, call, context.checker()->memory(mine, bytes));
}

void check_local(const Context& context, const char* call, const void* local, const void* mine, std::size_t bytes,
                 int pe) {
  end_if(context, call, context.checker()->local_memory(local, mine, bytes, pe));
}

void check_team_call(const Context& context, const Team& team, const char* call, const std::string& arguments) {
  check_thread(context, call);
  end_if(context, call,
         context.checker()->meet(set_of(team), std::string(call) + "(" + arguments + ")",
                                 thread_rule(context.thread_level())));
}

void announce_team_call(const Context& context, const Team& team, const char* call) {
  context.checker()->announce(set_of(team), std::string(call) + "()");
}

void check_members_call(const Members& members, const char* call, const CheckedBuffers* buffers,
                        std::initializer_list<CheckedArgument> arguments) {
  const Context& context = running(call);
  Checker& checker = *context.checker();
  check_thread(context, call);
  std::string text = std::string(call) + "(";
  const auto add = [&text](const char* name, const std::string& value) {
    text += (text.back() == '(' ? "" : ", ") + std::string(name) + " " + value;
  };
  if (buffers != nullptr) {
    end_if(context, call, checker.overlap(buffers->dest, buffers->source, buffers->may_be_in_place));
    add("dest", checker.name_of(buffers->dest.address));
    add("source", checker.name_of(buffers->source.address));
  }
  for (const CheckedArgument& argument : arguments) add(argument.name, std::to_string(argument.value));
  if (members.psync != nullptr) {
    // Threads may be in calls of one active set at once, with a pSync each: they do not meet here, and then the others
    // may have begun this call, or even the next, and have changed the words.
    if (context.thread_level() >= SHMEM_THREAD_MULTIPLE) {
      return;
    }
    end_if(context, call, checker.sync_words(members.psync, SHMEM_BARRIER_SYNC_SIZE, SHMEM_SYNC_VALUE));
    add("pSync", checker.name_of(members.psync));
  }
  if (members.here) {
    end_if(context, call, checker.meet({members.slot, *members.here}, text + ")", thread_rule(context.thread_level())));
  }
}

}  // namespace shmem::api
