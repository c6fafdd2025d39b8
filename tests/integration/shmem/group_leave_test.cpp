// SPDX-License-Identifier: Apache-2.0
// A rank that destroys its group, and whose process lives on, is noticed by those that wait for it.
#include <gtest/gtest.h>

#include "tests/integration/shmem/group_checks.hpp"

namespace {

using namespace group_ranks;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSoon{60};  // of calls with a limit of 120 s

/// What a rank that stays has to say of its call: "" if it has failed soon, and names rank 1.
std::string outcome(int error, Clock::time_point began) {
  const std::string text = error == 0 ? "no error" : shmemx_error_text();
  const bool good = (error == -EOWNERDEAD || error == -ECONNRESET || error == -ECANCELED) &&
                    text.find("rank 1") != std::string::npos && text.find("left the group") != std::string::npos;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  return good && took < kSoon ? "" : std::to_string(error) + " after " + std::to_string(took.count()) + " ms: " + text;
}

/// A call of a rank that stays.
using Call = std::function<int(shmemx_group_t* group, int rank)>;

/// Three ranks make a group, which rank 1 leaves. The others make the calls.
std::string leave(const std::vector<const char*>& hosts, const Call& call) {
  const SharedCount done;
  const SharedCount left;
  SharedStore second;
  return run_ranks(
      3,
      [&](shmemx_group_t* /*group*/, int rank, int size) -> std::string {
        shmemx_group_t* group = nullptr;
        const shmemx_group_store_t calls = second.calls();
        if (shmemx_group_create(&calls, rank, size, &group) != 0) {
          return shmemx_error_text();
        }
        std::string bad = check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 100'000, 0);
        if (rank == 1) {
          shmemx_group_destroy(group);
          left.add();
        } else {
          const auto began = Clock::now();
          bad += outcome(call(group, rank), began);
          bad += outcome(call(group, rank), began);  // from now on all fail
          shmemx_group_destroy(group);
        }
        done.add();
        while (done.get() < size) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return bad;
      },
      hosts);
}

int barrier(shmemx_group_t* group, int /*rank*/) {
  const shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
  return shmemx_group_run(group, &call);
}

int allreduce(shmemx_group_t* group, int /*rank*/) {
  Bytes data(std::size_t{1} << 20);
  void* place = data.data();
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLREDUCE);
  call.from = &place;
  call.to = &place;
  call.bytes = data.size();
  return shmemx_group_run(group, &call);
}

int receive(shmemx_group_t* group, int /*rank*/) {
  Bytes data(8);
  Mail mail;
  mail.receive(group, data, 1, 1);
  return shmemx_group_message_wait(mail.message);
}

/// It is over when it has been received.
int send(shmemx_group_t* group, int /*rank*/) {
  const Bytes data(8);
  Mail mail;
  mail.send(group, data, 1, 1, 3);
  return shmemx_group_message_wait(mail.message);
}

const std::vector<const char*> kOneNode{};
const std::vector<const char*> kThreeNodes{"kiwi", "lemon", "melon"};

TEST(GroupLeave, ABarrierFails) {
  EXPECT_EQ("", leave(kOneNode, barrier));
}

TEST(GroupLeave, ALargeCallFails) {
  EXPECT_EQ("", leave(kOneNode, allreduce));
}

TEST(GroupLeave, AMessageOfItFails) {
  EXPECT_EQ("", leave(kOneNode, receive));
}

TEST(GroupLeave, AMessageToItFails) {
  EXPECT_EQ("", leave(kOneNode, send));
}

TEST(GroupLeave, SymmetricMemoryFails) {
  EXPECT_EQ("", leave(kOneNode, [](shmemx_group_t* group, int /*rank*/) {
              shmemx_group_memory_t* memory = nullptr;
              const int error = shmemx_group_allocate(group, 100, 120'000'000'000, &memory);
              shmemx_group_memory_free(memory);
              return error;
            }));
}

TEST(GroupLeave, ACheckTellsIt) {
  EXPECT_EQ("", leave(kOneNode, [](shmemx_group_t* group, int /*rank*/) {
              int error = 0;
              const auto end = Clock::now() + kSoon;
              while ((error = shmemx_group_check(group, 1)) == 0 && Clock::now() < end) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
              return error;
            }));
}

TEST(GroupLeave, CallsOnSeveralNodesFail) {
  EXPECT_EQ("", leave(kThreeNodes, barrier));
  EXPECT_EQ("", leave(kThreeNodes, allreduce));
}

TEST(GroupLeave, MessagesOnSeveralNodesFail) {
  EXPECT_EQ("", leave(kThreeNodes, receive));
  EXPECT_EQ("", leave(kThreeNodes, send));
}

/// Rank 0 waits for a message of any rank. Rank 1 has left, rank 2 sends one later; then it leaves, too.
TEST(GroupLeave, AMessageOfAnyRankComesOfOneThatIsThere) {
  const SharedCount left;
  const SharedCount done;
  SharedStore second;
  EXPECT_EQ("", run_ranks(3, [&](shmemx_group_t* /*group*/, int rank, int size) -> std::string {
              shmemx_group_t* group = nullptr;
              const shmemx_group_store_t calls = second.calls();
              if (shmemx_group_create(&calls, rank, size, &group) != 0) {
                return shmemx_error_text();
              }
              std::string bad;
              Bytes data = filled(2, 1, 5);
              if (rank == 0) {
                Mail first;
                Mail last;
                Bytes got(5);
                first.receive(group, got, -1, 1);
                if (shmemx_group_message_wait(first.message) != 0 || got != data) {
                  bad += std::string("the first one: ") + shmemx_error_text();
                }
                const auto began = Clock::now();
                last.receive(group, got, -1, 1);
                if (shmemx_group_message_wait(last.message) != -EOWNERDEAD || Clock::now() - began > kSoon) {
                  bad += std::string("the last one: ") + shmemx_error_text();
                }
              } else if (rank == 2) {
                while (left.get() == 0) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // rank 0 has looked for rank 1
                Mail mail;
                mail.send(group, data, 0, 1);
                bad += shmemx_group_message_wait(mail.message) == 0 ? "" : shmemx_error_text();
              }
              shmemx_group_destroy(group);
              left.add();
              done.add();
              while (done.get() < size) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
              return bad;
            }));
}

}  // namespace
