// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/check.hpp"

#include "shmem/api/kernel_core.hpp"

namespace shmem::api {
namespace {

void end_if(const Runtime& runtime, const char* call, const Problem& problem) {
  if (problem) {
    runtime.end_job_of(call, *problem);
  }
}

static_assert(SHMEM_THREAD_SINGLE == 0 && SHMEM_THREAD_FUNNELED == 1 && SHMEM_THREAD_SERIALIZED == 2 &&
                  SHMEM_THREAD_MULTIPLE == 3 && SHMEM_THREAD_MULTIPLE == kThreadMultiple,
              "as in thread_rule()");

/// The library's own threads may always call.
void check_thread(const Runtime& runtime, const char* call) {
  if (current_core() == nullptr && !Stream::is_own_thread()) {
    end_if(runtime, call, runtime.checker()->thread(thread_rule(runtime.thread_level())));
  }
}

CallSet set_of(const Team& team) {
  return {team.slot(), team.map_here()};
}

}  // namespace

void check_symmetric(const Runtime& runtime, const char* call, const void* mine, std::size_t bytes) {
  check_thread(runtime, call);
  end_if(runtime, call, runtime.checker()->memory(mine, bytes));
}

void check_local(const Runtime& runtime, const char* call, const void* local, const void* mine, std::size_t bytes,
                 int pe) {
  end_if(runtime, call, runtime.checker()->local_memory(local, mine, bytes, pe));
}

void check_team_call(const Runtime& runtime, const Team& team, const char* call, const std::string& arguments) {
  check_thread(runtime, call);
  end_if(runtime, call,
         runtime.checker()->compare(set_of(team), std::string(call) + "(" + arguments + ")",
                                    thread_rule(runtime.thread_level())));
}

void announce_team_call(const Runtime& runtime, const Team& team, const char* call) {
  runtime.checker()->announce(set_of(team), std::string(call) + "()");
}

void watch_members_call(const Members& members, const char* call, const CheckedBuffers& buffers,
                        std::initializer_list<CheckedArgument> arguments) {
  const Runtime& runtime = running(call);
  if (CallCounts* const counts = runtime.counts(); counts != nullptr) {
    counts->add(CallKind::kCollective, buffers.source.bytes);
  }
  if (runtime.checker() != nullptr) {
    check_members_call(members, call, &buffers, arguments);
  }
}

void check_members_call(const Members& members, const char* call, const CheckedBuffers* buffers,
                        std::initializer_list<CheckedArgument> arguments) {
  const Runtime& runtime = running(call);
  Checker& checker = *runtime.checker();
  check_thread(runtime, call);
  std::string text = std::string(call) + "(";
  const auto add = [&text](const char* name, const std::string& value) {
    text += (text.back() == '(' ? "" : ", ") + std::string(name) + " " + value;
  };
  if (buffers != nullptr) {
    end_if(runtime, call, checker.overlap(buffers->dest, buffers->source, buffers->may_be_in_place));
    add("dest", checker.name_of(buffers->dest.address));
    add("source", checker.name_of(buffers->source.address));
  }
  for (const CheckedArgument& argument : arguments) {
    add(argument.name, std::to_string(argument.value));
  }
  if (members.psync != nullptr) {
    // Several threads may be in calls of one active set at once, each with its own pSync. Such calls do not rendezvous
    // here, so other PEs may have begun this call or the next one and changed the words.
    if (runtime.thread_level() >= SHMEM_THREAD_MULTIPLE) {
      return;
    }
    end_if(runtime, call, checker.sync_words(members.psync, SHMEM_BARRIER_SYNC_SIZE, SHMEM_SYNC_VALUE));
    add("pSync", checker.name_of(members.psync));
  }
  if (members.here) {
    end_if(runtime, call,
           checker.compare({members.slot, *members.here}, text + ")", thread_rule(runtime.thread_level())));
  }
}

}  // namespace shmem::api
