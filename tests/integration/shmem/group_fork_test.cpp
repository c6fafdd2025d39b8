// SPDX-License-Identifier: Apache-2.0
// A process forked from a member of a group: every call on a handle that it has inherited fails, and the members go on.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/integration/shmem/group_checks.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace group_ranks;

/// What a member has when it forks.
struct Handles {
  shmemx_group_t* group;
  shmemx_group_memory_t* memory;  // nullptr on several nodes
  shmemx_group_message_t* over;
  shmemx_group_message_t* pending;
};

std::set<std::string> declared_calls() {
  std::ifstream header(GROUP_HEADER);
  std::stringstream text;
  text << header.rdbuf();
  std::set<std::string> names;
  for (const auto& call : test_support::all_matches(text.str(), "SHMEM_API [a-z0-9_* ]*?(shmemx_group_[a-z_]+)\\(")) {
    names.insert(call[1]);
  }
  return names;
}

/// In the forked process: the outcome of each call, where 1 is one that is right for a call that returns no errno.
std::map<std::string, int> outcomes(const Handles& has) {
  std::map<std::string, int> got;
  Bytes data(64, 1);
  void* place = data.data();
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLREDUCE);
  call.from = &place;
  call.to = &place;
  call.bytes = data.size();
  std::array<char, 64> text{};
  shmemx_group_statistics_t statistics{};
  shmemx_group_memory_t* memory = nullptr;
  shmemx_group_message_t* message = nullptr;
  got["shmemx_group_run"] = shmemx_group_run(has.group, &call);
  got["shmemx_group_run_signed"] = shmemx_group_run_signed(has.group, &call, 1);
  got["shmemx_group_allocate"] = shmemx_group_allocate(has.group, 64, 0, &memory);
  got["shmemx_group_check"] = shmemx_group_check(has.group, 0);
  got["shmemx_group_abort"] = shmemx_group_abort(has.group, "forked");
  got["shmemx_group_missing"] = shmemx_group_missing(has.group, text.data(), text.size());
  got["shmemx_group_statistics"] = shmemx_group_statistics(has.group, &statistics);
  got["shmemx_group_send"] = shmemx_group_send(has.group, place, 8, 1, 3, 0, nullptr, nullptr, &message);
  got["shmemx_group_receive"] = shmemx_group_receive(has.group, place, 8, 1, 4, 0, nullptr, nullptr, &message);
  got["shmemx_group_send_typed"] = shmemx_group_send_typed(has.group, place, 8, 1, 1, 3, 0, nullptr, nullptr, &message);
  got["shmemx_group_receive_typed"] =
      shmemx_group_receive_typed(has.group, place, 8, 1, 1, 4, 0, nullptr, nullptr, &message);
  got["shmemx_group_message_test"] = shmemx_group_message_test(has.over);
  got["shmemx_group_message_wait"] = shmemx_group_message_wait(has.pending);
  got["shmemx_group_message_source"] = shmemx_group_message_source(has.over);
  got["shmemx_group_message_peer_type"] = shmemx_group_message_peer_type(has.over) == 0 ? 1 : 0;
  const bool none = has.memory == nullptr || (shmemx_group_memory_address(has.memory) == nullptr &&
                                              shmemx_group_memory_of(has.memory, 1) == nullptr);
  got["shmemx_group_memory_address"] = got["shmemx_group_memory_of"] = none ? 1 : 0;
  shmemx_group_message_free(has.over);
  shmemx_group_message_free(has.pending);
  shmemx_group_memory_free(has.memory);
  shmemx_group_destroy(has.group);
  for (const char* name : {"message_free", "memory_free", "destroy"}) {
    got[std::string("shmemx_group_") + name] = 1;
  }
  // A group of its own: the one call that needs no handle.
  SharedStore store;
  const shmemx_group_store_t calls = store.calls();
  shmemx_group_t* own = nullptr;
  const bool made = shmemx_group_create(&calls, 0, 1, &own) == 0 && shmemx_group_run(own, &call) == 0;
  shmemx_group_destroy(own);
  got["shmemx_group_create"] = made ? 1 : 0;
  return got;
}

std::string wrong_calls_of_a_forked_process(const Handles& has) {
  std::array<int, 2> pipe{};
  static_cast<void>(::pipe(pipe.data()));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto got = outcomes(has);
    std::string wrong;
    for (const std::string& name : declared_calls()) {
      const auto found = got.find(name);
      if (found == got.end() || (found->second != -EPERM && found->second != 1)) {
        wrong += name + " " + (found == got.end() ? "was not made" : std::to_string(found->second)) + ", ";
      }
    }
    static_cast<void>(::write(pipe[1], wrong.data(), wrong.size()));
    ::_exit(got.size() < 20 ? 1 : 0);
  }
  ::close(pipe[1]);
  std::string wrong;
  std::array<char, 2048> text{};
  for (ssize_t got = 0; (got = ::read(pipe[0], text.data(), text.size())) > 0;) {
    wrong.append(text.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? wrong : wrong + "status " + std::to_string(status);
}

/// Rank 0 forks while it has all kinds of handles, and a message under way. Afterwards all goes on as if it had not.
std::string check_fork(shmemx_group_t* group, int rank, int size, bool has_memory) {
  const Bytes data = filled(rank, 1, 300'000);
  Bytes got(data.size());
  Bytes late(8);
  Mail sent;
  Mail received;
  Mail pending;
  shmemx_group_memory_t* memory = nullptr;
  if (has_memory && shmemx_group_allocate(group, 4096, 0, &memory) != 0) {
    return shmemx_error_text();
  }
  sent.send(group, data, 1 - rank, 1, 7);
  received.receive_typed(group, got, 1 - rank, 1, 7);
  pending.receive(group, late, 1 - rank, 2);
  if (shmemx_group_message_wait(received.message) != 0 || shmemx_group_message_wait(sent.message) != 0) {
    return shmemx_error_text();
  }
  std::string bad;
  if (rank == 0) {
    bad = wrong_calls_of_a_forked_process({group, memory, received.message, pending.message});
  }
  for (int i = 0; i < 3; ++i) {
    bad += check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 64, 0);
  }
  const Bytes last = filled(rank, 2, 8);
  Mail out;
  out.send(group, last, 1 - rank, 2);
  if (shmemx_group_message_wait(pending.message) != 0 || shmemx_group_message_wait(out.message) != 0) {
    bad += shmemx_error_text();
  }
  bad += late == filled(1 - rank, 2, 8) && got == filled(1 - rank, 1, got.size()) ? "" : "wrong data";
  if (memory != nullptr) {
    auto* const mine = static_cast<std::uint8_t*>(shmemx_group_memory_address(memory));
    bad += mine != nullptr && *mine == 0 ? "" : "the memory has changed";
  }
  shmemx_group_memory_free(memory);
  return bad + check_kind(group, SHMEMX_GROUP_ALLGATHER, rank, size, 1000, 0);
}

TEST(GroupFork, EachCallOfAForkedProcessIsAnErrorAndTheMembersGoOn) {
  ASSERT_GE(declared_calls().size(), 20U);
  EXPECT_EQ(
      "", run_ranks(2, [](shmemx_group_t* group, int rank, int size) { return check_fork(group, rank, size, true); }));
}

TEST(GroupFork, OnSeveralNodesToo) {
  EXPECT_EQ("",
            run_ranks(2, [](shmemx_group_t* group, int rank, int size) { return check_fork(group, rank, size, false); },
                      {"kiwi", "lemon"}));
}

/// The forked process stays, and ends after its parent has left the group.
TEST(GroupFork, TheOrdinaryEndOfAForkedProcessChangesNothing) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int size) {
              std::array<int, 2> pipe{};
              static_cast<void>(::pipe(pipe.data()));
              const pid_t child = rank == 0 ? ::fork() : -1;
              if (child == 0) {
                char one = 0;
                ::close(pipe[1]);
                static_cast<void>(::read(pipe[0], &one, 1));
                shmemx_group_destroy(group);
                ::_exit(0);
              }
              std::string bad = check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 64, 0);
              ::close(pipe[1]);
              if (rank == 0) {
                ::waitpid(child, nullptr, 0);
              }
              return bad + check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 64, 0);
            }));
}

}  // namespace
