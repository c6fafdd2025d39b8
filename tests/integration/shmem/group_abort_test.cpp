// SPDX-License-Identifier: Apache-2.0
// A rank that aborts its group ends the calls of all ranks, its own included.
#include <gtest/gtest.h>

#include "tests/integration/shmem/group_checks.hpp"

namespace {

using namespace group_ranks;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSoon{60};                // of calls with a limit of 120 s
constexpr std::chrono::milliseconds kUntilTheyWait{50};  // right, too, if they do not wait yet
constexpr int kAborter = 1;

/// A call that waits: rank 2 does not make it.
using Call = std::function<int(shmemx_group_t* group, int rank)>;

/// "" if the call has failed soon, and its text names the aborter and the reason.
std::string outcome(const Call& call, shmemx_group_t* group, int rank) {
  const auto began = Clock::now();
  const int error = call(group, rank);
  const std::string text = error == 0 ? "no error" : shmemx_error_text();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  const bool good = (error == -ECANCELED || error == -ECONNRESET) && text.find("rank 1") != std::string::npos &&
                    text.find("for the test") != std::string::npos;
  return good && took < kSoon ? ""
                              : "rank " + std::to_string(rank) + ": " + std::to_string(error) + " after " +
                                    std::to_string(took.count()) + " ms: " + text + "; ";
}

/// Ranks 0 and 1 make the call in a thread; rank 1 aborts the group meanwhile. Rank 2 makes it after that.
std::string abort_during(const std::vector<const char*>& hosts, const Call& call) {
  const SharedCount waiting;
  const SharedCount aborted;
  const SharedCount done;
  SharedStore second;
  return run_ranks(
      3,
      [&](shmemx_group_t* /*group*/, int rank, int size) -> std::string {
        shmemx_group_t* group = nullptr;
        const shmemx_group_store_t calls = second.calls();
        if (shmemx_group_create(&calls, rank, size, &group) != 0) {
          return shmemx_error_text();
        }
        std::string bad;
        const auto until = [](const SharedCount& count, int value) {
          while (count.get() < value) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        };
        if (rank == 2) {
          until(aborted, 1);
          bad = outcome(call, group, rank);
        } else {
          std::thread thread([&] {
            waiting.add();
            bad = outcome(call, group, rank);
          });
          if (rank == kAborter) {
            until(waiting, 2);
            std::this_thread::sleep_for(kUntilTheyWait);
            bad += shmemx_group_abort(group, "for the test") == 0 ? "" : "abort failed; ";
            aborted.add();
          }
          thread.join();
        }
        bad += outcome(call, group, rank);  // from now on all fail
        bad += shmemx_group_check(group, rank) == -ECANCELED || !hosts.empty() ? "" : "the check found nothing; ";
        done.add();
        until(done, size);
        shmemx_group_destroy(group);
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

int receive(shmemx_group_t* group, int rank) {
  Bytes data(8);
  Mail mail;
  mail.receive(group, data, rank == 2 ? 0 : 2, 1);
  return shmemx_group_message_wait(mail.message);
}

const std::vector<const char*> kOneNode{};
const std::vector<const char*> kTwoNodes{"kiwi", "lemon", "kiwi"};

TEST(GroupAbort, ABarrierEnds) {
  EXPECT_EQ("", abort_during(kOneNode, barrier));
}

TEST(GroupAbort, ALargeCallEnds) {
  EXPECT_EQ("", abort_during(kOneNode, allreduce));
}

TEST(GroupAbort, AMessageEnds) {
  EXPECT_EQ("", abort_during(kOneNode, receive));
}

TEST(GroupAbort, CallsOnSeveralNodesEnd) {
  EXPECT_EQ("", abort_during(kTwoNodes, barrier));
  EXPECT_EQ("", abort_during(kTwoNodes, allreduce));
}

TEST(GroupAbort, MessagesOnSeveralNodesEnd) {
  EXPECT_EQ("", abort_during(kTwoNodes, receive));
}

TEST(GroupAbort, AHandleIsNeeded) {
  EXPECT_EQ(-EINVAL, shmemx_group_abort(nullptr, "for the test"));
}

}  // namespace
