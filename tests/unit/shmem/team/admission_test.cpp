// SPDX-License-Identifier: Apache-2.0
// Processes that take the place of a PE are told of their team once, and no other process is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "shmem/layout/peers.hpp"
#include "shmem/team/admission.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Admission;
using shmem::Job;
using shmem::Result;
using shmem_test::run_job;
using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr milliseconds kLong{60'000};

/// A process that comes to the place of job.me, and the slot that it is told.
std::future<Result<int>> come(const Job& job, milliseconds limit) {
  Admission(job).announce();
  return std::async(std::launch::async, [&job, limit] { return Admission(job).wait(limit); });
}

void await_one(const Admission& members) {
  while (members.waiting().empty()) {
    std::this_thread::yield();
  }
}

/// PE 0 is the member; PE 1's place is taken by one process after another, played by the same thread.
void run_member(const std::function<void(const Job& member, const Job& newcomer)>& body) {
  const Job* newcomer = nullptr;
  run_job(2, [&](Job& job) {
    if (job.me == 1) {
      newcomer = &job;
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      body(job, *newcomer);
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

TEST(Admission, TellsTheProcessThatWaits) {
  run_member([](const Job& job, const Job& place) {
    const Admission members(job);
    auto told = come(place, kLong);
    await_one(members);
    members.write(5, {0}, members.waiting());
    EXPECT_TRUE(was_replaced(job, 1, 0));
    members.tell(5);
    EXPECT_EQ(told.get().value(), 5);
    EXPECT_THAT(members.read(5), ElementsAre(0, 1));
    EXPECT_FALSE(was_replaced(job, 1, 1)) << "the team of slot 5 knows admission 1";
    EXPECT_TRUE(was_replaced(job, 1, 0)) << "older teams do not";
  });
}

/// The process that was admitted was told by another member, has died, and the next one has come, when a slow member
/// tells what it knows.
TEST(Admission, DoesNotTellALaterProcess) {
  run_member([](const Job& job, const Job& place) {
    const Admission members(job);
    auto first = come(place, kLong);
    await_one(members);
    members.write(5, {0}, members.waiting());
    members.tell(5);
    ASSERT_EQ(first.get().value(), 5);

    auto second = come(place, kLong);
    await_one(members);
    members.tell(5);
    EXPECT_THAT(members.waiting(), ElementsAre(1)) << "the second process took the first one's seat";
    EXPECT_TRUE(was_replaced(job, 1, 1)) << "the second process is taken for the first one";
    members.write(6, {0}, members.waiting());
    members.tell(6);
    EXPECT_EQ(second.get().value(), 6);
    EXPECT_FALSE(was_replaced(job, 1, 2));
  });
}

TEST(Admission, TellsAProcessThatHasWaitedInVainBefore) {
  run_member([](const Job& job, const Job& place) {
    const Admission members(job);
    EXPECT_EQ(come(place, milliseconds{1}).get().error().code, std::errc::timed_out);
    EXPECT_THAT(members.waiting(), ElementsAre());
    auto told = std::async(std::launch::async, [&place] { return Admission(place).wait(kLong); });
    await_one(members);
    members.write(7, {0}, members.waiting());
    members.tell(7);
    EXPECT_EQ(told.get().value(), 7);
  });
}

}  // namespace
