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
