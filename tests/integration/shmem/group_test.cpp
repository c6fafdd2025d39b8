// SPDX-License-Identifier: Apache-2.0
// Groups that a program forms itself, between forked processes with a store in shared memory.
#include <gtest/gtest.h>
#include <shmemx.h>
#include <shmemx_group.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fstream>

#include "tests/integration/shmem/group_checks.hpp"

namespace {

using namespace group_ranks;

TEST(Group, CollectivesMoveAndCombineAllSizes) {
  for (const int size : {1, 2, 3}) {
    EXPECT_EQ("", run_ranks(size, check_all_kinds)) << size;
  }
}

TEST(Group, AlltoallTakesSizesThatDiffer) {
  for (const int size : {1, 2, 4}) {
    EXPECT_EQ("", run_ranks(size, check_alltoall)) << size;
  }
}

TEST(Group, CallsThatDifferFailOnAllRanksAndTheGroupGoesOn) {
  EXPECT_EQ("", run_ranks(3, check_calls_that_differ));
}

TEST(Group, ADeadRankIsNamedToAllAndTheSurvivorsFormANewGroup) {
  SharedStore second;
  const std::string all = run_ranks(4, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    if (rank == 3) {
      ::raise(SIGKILL);
    }
    Bytes data(2 << 20);
    void* place = data.data();
    call = call_of(SHMEMX_GROUP_ALLREDUCE);
    call.from = &place;
    call.to = &place;
    call.bytes = data.size();
    const int error = shmemx_group_run(group, &call);
    const std::string text = shmemx_error_text();
    if ((error != -EOWNERDEAD && error != -ECANCELED) || text.find("rank 3") == std::string::npos) {
      return "got " + std::to_string(error) + ": " + text;
    }
    std::string bad = expect_failure(group, call, -error, {text});
    shmemx_group_t* next = nullptr;
    const shmemx_group_store_t calls = second.calls();
    if (shmemx_group_create(&calls, rank, 3, &next) != 0) {
      return std::string("new group: ") + shmemx_error_text();
    }
    bad += check_kind(next, SHMEMX_GROUP_ALLREDUCE, rank, 3, 3000, 0);
    shmemx_group_destroy(next);
    return bad;
  });
  EXPECT_EQ("rank 3:  (status 9)\n", all);
}

TEST(Group, ATimeoutNamesTheRankThatDidNotCome) {
  const SharedCount gave_up;
  EXPECT_EQ("", run_ranks(3, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
              shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
              if (rank == 1) {
                while (gave_up.get() < 2) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
                return expect_failure(group, call, ECANCELED, {"rank 1"});
              }
              call.timeout_ns = 200'000'000;
              const int error = shmemx_group_run(group, &call);
              const std::string text = shmemx_error_text();
              gave_up.add();
              const bool good =
                  (error == -ETIMEDOUT || error == -ECANCELED) && text.find("rank 1 (pid") != std::string::npos;
              return good ? "" : text;
            }));
}

// --- Messages ---

TEST(Group, MessagesAreMatchedByTagInAnyOrderAndSize) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) {
              return check_messages(group, rank, true);
            }));
}

TEST(Group, MessagesOfAnyRankAreReceived) {
  EXPECT_EQ("", run_ranks(4, check_messages_of_any));
}

TEST(Group, ManyMessagesGoBackAndForth) {
  EXPECT_EQ("", run_ranks(3, check_many_messages));
}

TEST(Group, AMessageThatIsNotWaitedForArrives) {
  EXPECT_EQ("", run_ranks(2, check_message_not_waited_for));
}

/// Whether a rank can read the memory of the other one of two.
bool reads_memory_of_other(shmemx_group_t* group, int rank) {
  static std::uint64_t same_address_in_both = 0;
  std::array<pid_t, 2> pids{};
  std::array<void*, 2> to{pids.data(), &pids[1]};
  const pid_t mine = ::getpid();
  const void* const from = &mine;
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLGATHER);
  call.from = &from;
  call.to = to.data();
  call.bytes = sizeof mine;
  std::uint64_t word = 0;
  const iovec here{&word, sizeof word};
  const iovec there{&same_address_in_both, sizeof word};
  return shmemx_group_run(group, &call) == 0 &&
         ::process_vm_readv(pids[static_cast<std::size_t>(1 - rank)], &here, 1, &there, 1, 0) == sizeof word;
}

std::uint64_t direct_messages(shmemx_group_t* group) {
  shmemx_group_statistics_t now{};
  return shmemx_group_statistics(group, &now) == 0 ? now.direct_messages : 0;
}

/// Sends a long message to the other one of two ranks, and receives one.
std::string swap_long_messages(shmemx_group_t* group, int rank, int number) {
  constexpr std::size_t kBytes = 1'000'001;
  const Bytes data = filled(rank, number, kBytes);
  Bytes got(kBytes);
  Mail sent;
  Mail received;
  sent.send(group, data, 1 - rank, number);
  received.receive(group, got, 1 - rank, number);
  if (shmemx_group_message_wait(received.message) != 0 || shmemx_group_message_wait(sent.message) != 0) {
    return shmemx_error_text();
  }
  return got == filled(1 - rank, number, kBytes) ? "" : "wrong data of message " + std::to_string(number);
}

TEST(Group, LongMessagesAreCopiedOnceIfTheReceiverCanReadThem) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) {
              const bool can = reads_memory_of_other(group, rank);
              std::string bad;
              for (int number = 0; number < 4; ++number) {
                bad += swap_long_messages(group, rank, number);
              }
              // The first one shows whether it can.
              const std::uint64_t direct = direct_messages(group);
              return direct == (can ? 3U : 0U) ? bad : bad + std::to_string(direct) + " messages were direct";
            }));
}

TEST(Group, AMessageWhoseSenderHasGivenItUpIsNotTaken) {
  const SharedCount gave_up;
  const SharedCount received;
  EXPECT_EQ("", run_ranks(2, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
              if (std::string bad = swap_long_messages(group, rank, 0); !bad.empty()) {
                return bad;
              }
              Bytes data = filled(0, 1, 1'000'001);
              Mail mail;
              if (rank == 0) {
                shmemx_group_send(group, data.data(), data.size(), 1, 1, 100'000'000, Mail::count, &mail,
                                  &mail.message);
                const int error = shmemx_group_message_wait(mail.message);
                std::fill(data.begin(), data.end(), std::uint8_t{0xee});
                gave_up.add();
                while (received.get() == 0) {  // the buffer stays
                  std::this_thread::yield();
                }
                return error == -ETIMEDOUT ? "" : "the sender got " + std::to_string(error);
              }
              while (gave_up.get() == 0) {
                std::this_thread::yield();
              }
              mail.receive(group, data, 0, 1, 2'000'000'000);
              const int error = shmemx_group_message_wait(mail.message);
              received.add();
              return error != 0 ? "" : "it was received";
            }));
}

/// Rank 0 gives up its message to rank 1 because rank 2 has died: rank 1 is told of rank 2.
/// Says that a key does not exist yet, for ever. Kills the process in its last set.
struct ImpatientStore {
  SharedStore& store;
  int sets_left;
  [[nodiscard]] shmemx_group_store_t calls() {
    return {this,
            [](void* self, const char* key, const void* value, std::size_t size) {
              auto& here = *static_cast<ImpatientStore*>(self);
              if (--here.sets_left == 0) {
                ::raise(SIGKILL);
              }
              const shmemx_group_store_t calls = here.store.calls();
              return calls.set(calls.context, key, value, size);
            },
            [](void* self, const char* key, void* value, std::size_t size) {
              const SharedStore& all = static_cast<ImpatientStore*>(self)->store;
              return all.wait_for(key, value, size, std::chrono::milliseconds(50)) ? 0 : -EAGAIN;
            }};
  }
};

TEST(Group, ARankThatDiesWhileTheGroupIsMadeIsNamed) {
  SharedStore second;
  const std::string all = run_ranks(4, [&](shmemx_group_t* /*group*/, int rank, int size) -> std::string {
    ImpatientStore store{second, rank == 2 ? 2 : 1000};
    const shmemx_group_store_t calls = store.calls();
    shmemx_group_t* next = nullptr;
    const int error = shmemx_group_create(&calls, rank, size, &next);
    const std::string text = shmemx_error_text();
    return error == -EOWNERDEAD && text.find("rank 2 (pid") != std::string::npos
               ? ""
               : "got " + std::to_string(error) + ": " + text;
  });
  EXPECT_EQ("rank 2:  (status 9)\n", all);
}

TEST(Group, AMessageThatIsGivenUpForADeadRankNamesIt) {
  const SharedCount gave_up;
  const SharedCount received;
  const std::string all = run_ranks(3, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    if (rank == 2) {
      ::raise(SIGKILL);
    }
    if (std::string bad = swap_long_messages(group, rank, 0); !bad.empty()) {
      return bad;
    }
    Bytes data(1'000'001);
    Mail mail;
    if (rank == 0) {
      Bytes never(8);
      Mail from_dead;
      mail.send(group, data, 1, 1);
      from_dead.receive(group, never, 2, 1);
      const int error = shmemx_group_message_wait(from_dead.message);
      gave_up.add();
      while (received.get() == 0) {  // the buffer stays
        std::this_thread::yield();
      }
      return error == -EOWNERDEAD ? "" : shmemx_error_text();
    }
    while (gave_up.get() == 0) {
      std::this_thread::yield();
    }
    mail.receive(group, data, 0, 1);
    shmemx_group_message_wait(mail.message);
    const std::string text = shmemx_error_text();
    received.add();
    return text.find("rank 2 (pid") != std::string::npos ? "" : text;
  });
  EXPECT_EQ("rank 2:  (status 9)\n", all);
}

TEST(Group, MessagesFailWithNamesOfRanks) {
  const std::string all = run_ranks(3, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    Bytes data(64);
    if (rank == 0) {
      Mail late;
      late.receive(group, data, 1, 1, 100'000'000);
      if (shmemx_group_message_wait(late.message) != -ETIMEDOUT ||
          std::string(shmemx_error_text()).find("rank 1 (pid") == std::string::npos) {
        return std::string("timeout: ") + shmemx_error_text();
      }
    }
    Mail mail;
    if (rank == 1) {
      Bytes longer(100);
      mail.send(group, longer, 0, 2);
      if (shmemx_group_message_wait(mail.message) != 0) {
        return shmemx_error_text();
      }
    } else if (rank == 0) {
      mail.receive(group, data, 1, 2);
      if (shmemx_group_message_wait(mail.message) != -EMSGSIZE ||
          std::string(shmemx_error_text()).find("has 100 bytes") == std::string::npos) {
        return std::string("size: ") + shmemx_error_text();
      }
    }
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    if (rank == 2) {
      ::raise(SIGKILL);
    }
    Mail last;
    last.receive(group, data, rank == 0 ? 2 : -1, 3);
    int error = rank == 0 ? shmemx_group_message_wait(last.message) : -EAGAIN;
    while (error == -EAGAIN) {
      std::this_thread::yield();
      error = shmemx_group_message_test(last.message);
    }
    const std::string text = shmemx_error_text();
    return (error == -EOWNERDEAD || error == -ECANCELED) && text.find("rank 2 (pid") != std::string::npos ? "" : text;
  });
  EXPECT_EQ("rank 2:  (status 9)\n", all);
}

TEST(Group, AMessageThatBreaksOffFails) {
  const std::string all = run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    Bytes data(8 << 20);  // more than a ring takes
    Mail mail;
    if (rank == 1) {
      mail.send(group, data, 0, 1);
      ::raise(SIGKILL);
    }
    mail.receive(group, data, 1, 1);
    const int error = shmemx_group_message_wait(mail.message);
    const std::string text = shmemx_error_text();
    return error == -EOWNERDEAD && text.find("rank 1 (pid") != std::string::npos ? "" : std::to_string(error) + text;
  });
  EXPECT_EQ("rank 1:  (status 9)\n", all);
}

/// No more address space than this process has, and `more` bytes.
void limit_memory(rlim_t more) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_AS, &limit);
}

TEST(Group, AMessageThatThereIsNoMemoryForFails) {
  const std::string all = run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
    Bytes data(rank == 1 ? 256 << 20 : 8);
    Mail mail;
    if (rank == 1) {
      mail.send(group, data, 0, 2);
      shmemx_group_message_wait(mail.message);
      return "";
    }
    limit_memory(128 << 20);
    mail.receive(group, data, 1, 1);
    const int error = shmemx_group_message_wait(mail.message);
    return error == -ENOMEM ? "" : std::to_string(error) + shmemx_error_text();
  });
  EXPECT_EQ("", all);
}

TEST(Group, MembersThatHaveNotBegunACallAreNamed) {
  const SharedCount looked;
  EXPECT_EQ("", run_ranks(3, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
              std::array<char, 200> missing{"?"};
              shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
              if (shmemx_group_run(group, &call) != 0 ||
                  shmemx_group_missing(group, missing.data(), missing.size()) != 0 || missing[0] != '\0') {
                return std::string("after a call: ") + missing.data() + shmemx_error_text();
              }
              std::string bad;
              std::thread other;
              if (rank == 0) {
                other = std::thread([&] {
                  std::string text;
                  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
                  while (text.rfind("rank 2 (pid ", 0) != 0 && std::chrono::steady_clock::now() < deadline) {
                    shmemx_group_missing(group, missing.data(), missing.size());
                    text = missing.data();
                  }
                  shmemx_group_missing(group, missing.data(), 5);
                  bad = std::string(missing.data()) == "rank" ? "" : "missing: " + text + ", cut: " + missing.data();
                  looked.add();
                });
              }
              while (rank == 2 && looked.get() == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
              const int error = shmemx_group_run(group, &call);
              if (rank == 0) {
                other.join();
              }
              return error == 0 ? bad : shmemx_error_text();
            }));
}

TEST(Group, WrongArgumentsAreErrors) {
  shmemx_group_t* group = nullptr;
  EXPECT_EQ(-EINVAL, shmemx_group_create(nullptr, 0, 1, &group));
  SharedStore store;
  const shmemx_group_store_t calls = store.calls();
  EXPECT_EQ(-EINVAL, shmemx_group_create(&calls, 2, 2, &group));
  EXPECT_EQ(-EINVAL, shmemx_group_create(&calls, 0, 0, &group));
  EXPECT_EQ(-EINVAL, shmemx_group_run(nullptr, nullptr));
  shmemx_group_message_t* message = nullptr;
  EXPECT_EQ(-EINVAL, shmemx_group_send(nullptr, nullptr, 0, 0, 0, 0, nullptr, nullptr, &message));
  ASSERT_EQ(0, shmemx_group_create(&calls, 0, 1, &group)) << shmemx_error_text();
  EXPECT_EQ(-EINVAL, shmemx_group_send(group, nullptr, 0, 1, 0, 0, nullptr, nullptr, &message));
  EXPECT_EQ(-EINVAL, shmemx_group_receive(group, nullptr, 0, -2, 0, 0, nullptr, nullptr, &message));
  std::array<char, 1> text{};
  EXPECT_EQ(-EINVAL, shmemx_group_missing(nullptr, text.data(), text.size()));
  EXPECT_EQ(-EINVAL, shmemx_group_missing(group, nullptr, 1));
  EXPECT_EQ(-EINVAL, shmemx_group_missing(group, text.data(), 0));
  shmemx_group_call_t call = call_of(99);
  EXPECT_EQ(-EINVAL, shmemx_group_run(group, &call));
  call = call_of(SHMEMX_GROUP_BROADCAST);
  call.root = 1;
  EXPECT_EQ(-EINVAL, shmemx_group_run(group, &call));
  call = call_of(SHMEMX_GROUP_ALLTOALL);
  std::uint64_t bytes = std::uint64_t{0} - 4;  // not even one such block
  call.from_bytes = &bytes;
  call.to_bytes = &bytes;
  EXPECT_EQ(-EINVAL, shmemx_group_run(group, &call));
  EXPECT_NE(std::string(shmemx_error_text()).find("more than any memory"), std::string::npos) << shmemx_error_text();
  shmemx_group_destroy(group);
}

TEST(Group, SeveralGroupsEndInAnyOrder) {
  SharedStore other;
  EXPECT_EQ("", run_ranks(3, [&](shmemx_group_t* group, int rank, int size) -> std::string {
              std::string bad;
              if (rank != 1) {  // a subset, with numbers of its own
                shmemx_group_t* pair = nullptr;
                const shmemx_group_store_t calls = other.calls();
                if (shmemx_group_create(&calls, rank / 2, 2, &pair) != 0) {
                  return shmemx_error_text();
                }
                bad = check_kind(pair, SHMEMX_GROUP_ALLGATHER, rank / 2, 2, 10, 0);
                shmemx_group_destroy(pair);
              }
              return bad + check_kind(group, SHMEMX_GROUP_ALLGATHER, rank, size, 10, 0);
            }));
}

}  // namespace
