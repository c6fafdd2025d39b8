// SPDX-License-Identifier: Apache-2.0
// Messages with types between ranks on one node.
#include <gtest/gtest.h>

#include <signal.h>

#include "tests/integration/shmem/typed_checks.hpp"

namespace {

using namespace group_ranks;

TEST(GroupTyped, TypedMessagesThatDifferFailOnBothRanksAndLaterOnesArrive) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) {
              return check_typed_messages(group, rank, true);
            }));
}

TEST(GroupTyped, ATypedMessageThatIsReceivedLateIsNotTakenForALaterOne) {
  const SharedCount gave_up;
  EXPECT_EQ("", run_ranks(2, [&](shmemx_group_t* group, int rank, int /*size*/) {
              return check_late_typed(group, rank, gave_up);
            }));
}

/// More than there are answers in a ring.
TEST(GroupTyped, ManyTypedMessagesAreAnsweredInAnyOrder) {
  EXPECT_EQ("", run_ranks(2, check_many_typed_messages));
}

/// Rank 0 gives up all of them, and makes no call while rank 1 receives them, so that it hears no answer.
TEST(GroupTyped, MoreMessagesThanThereAreAnswersAreReceivedAfterTheirSenderHasGivenThemUp) {
  constexpr std::size_t kMessages = 200;
  const SharedCount gave_up;
  const SharedCount received;
  EXPECT_EQ("", run_ranks(2, [&](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
              std::vector<Mail> mails(kMessages);
              std::vector<Bytes> data(kMessages, Bytes(16));
              std::string bad;
              for (std::size_t i = 0; rank == 0 && i < kMessages; ++i) {
                data[i] = filled(0, static_cast<int>(i), 16);
                mails[i].send(group, data[i], 1, 1, 7, 100'000'000);
              }
              for (std::size_t i = 0; rank == 0 && i < kMessages; ++i) {
                const int error = shmemx_group_message_wait(mails[i].message);
                bad += error == -ETIMEDOUT ? "" : "the sender got " + std::to_string(error) + "; ";
              }
              if (rank == 0) {
                gave_up.add();
              }
              while (gave_up.get() == 0 || (rank == 0 && received.get() == 0)) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
              const auto began = std::chrono::steady_clock::now();
              for (std::size_t i = 0; rank == 1 && i < kMessages; ++i) {
                mails[i].receive_typed(group, data[i], 0, 1, 7);
                const int error = shmemx_group_message_wait(mails[i].message);
                bad += error == 0 && data[i] == filled(0, static_cast<int>(i), 16) ? "" : std::to_string(i) + "; ";
              }
              if (std::chrono::steady_clock::now() - began > std::chrono::seconds(60)) {
                bad += "it took too long; ";
              }
              received.add();
              // Answers that were not heard are not taken for those of later messages.
              Mail last;
              Bytes got = filled(0, 1, 24);
              if (rank == 0) {
                last.send(group, got, 1, 2, 7);
              } else {
                last.receive_typed(group, got, 0, 2, 7);
              }
              return bad + (shmemx_group_message_wait(last.message) == 0 ? "" : shmemx_error_text());
            }));
}

TEST(GroupTyped, ATypedMessageFailsWhenItsReceiverDies) {
  EXPECT_EQ("rank 1:  (status 9)\n", run_ranks(2, [](shmemx_group_t* group, int rank, int /*size*/) -> std::string {
              if (rank == 1) {
                ::raise(SIGKILL);
              }
              const Bytes data(16);
              Mail mail;
              mail.send(group, data, 1, 1, 7);
              return shmemx_group_message_wait(mail.message) == -EOWNERDEAD ? "" : shmemx_error_text();
            }));
}

}  // namespace
