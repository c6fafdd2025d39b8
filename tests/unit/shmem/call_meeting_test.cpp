// SPDX-License-Identifier: Apache-2.0
#include "shmem/checking/call_meeting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "shmem/team/peers.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::CallMeeting;
using shmem::CallSet;
using shmem::Job;
using shmem::kActiveSet;
using testing::AllOf;
using testing::HasSubstr;

CallSet world(int pes) {
  return {0, {0, 1, pes}};
}

void with_meetings(int pes, const std::function<void(CallMeeting&, Job&)>& body, const shmem::Options& options = {}) {
  shmem_test::run_job(
      pes,
      [&](Job& job) {
        shmem::introduce(job);
        EXPECT_TRUE(job.bootstrap->barrier());
        CallMeeting meeting(job);
        body(meeting, job);
        EXPECT_TRUE(job.bootstrap->barrier());
      },
      options);
}

/// What the PE that reports would say: the others are ended by it.
class Report {
 public:
  void take(const std::optional<std::string>& problem, Job& job) {
    const std::lock_guard lock(mutex_);
    if (problem && !problem->empty()) {
      ++reports_;
      text_ = *problem;
      job.bootstrap->abort(1, text_);
    }
  }
  [[nodiscard]] int reports() const { return reports_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  int reports_ = 0;
  std::string text_;
};

TEST(CallMeeting, LetsEqualCallsPassInAllSets) {
  with_meetings(4, [](CallMeeting& meeting, Job& job) {
    const CallSet pair{2, {job.me / 2 * 2, 1, 2}};
    for (int i = 0; i < test_support::repeats(100, 5000); ++i) {
      EXPECT_EQ(meeting.meet(world(4), "call " + std::to_string(i)), std::nullopt);
      EXPECT_EQ(meeting.meet(pair, "pair " + std::to_string(job.me / 2)), std::nullopt);
      if (job.me % 2 == 0) {
        EXPECT_EQ(meeting.meet({kActiveSet, {0, 2, 2}}, "even"), std::nullopt);
      }
    }
  });
}

TEST(CallMeeting, NamesTheFirstMemberAndTheOneThatDiffersOnce) {
  Report report;
  with_meetings(4, [&](CallMeeting& meeting, Job& job) {
    EXPECT_EQ(meeting.meet(world(4), "same"), std::nullopt);
    report.take(meeting.meet(world(4), job.me == 2 ? "other(1)" : "same(1)"), job);
  });
  EXPECT_EQ(report.reports(), 1);
  EXPECT_THAT(report.text(),
              HasSubstr("the PEs of team 0 do not make the same call: PE 0 calls same(1), PE 2 calls other(1)"));
}

TEST(CallMeeting, FindsPesThatWaitForEachOtherInACircle) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    Report report;
    with_meetings(3, [&](CallMeeting& meeting, Job& job) {
      const std::array<CallSet, 3> sets{CallSet{5, {0, 1, 2}}, CallSet{6, {1, 1, 2}}, CallSet{kActiveSet, {0, 2, 2}}};
      report.take(meeting.meet(sets[static_cast<std::size_t>(job.me)], "sync()"), job);
    });
    EXPECT_EQ(report.reports(), 1);
    EXPECT_THAT(report.text(),
                AllOf(HasSubstr("PE 0 is in sync() of team 5 and waits for PE 1"),
                      HasSubstr("PE 1 is in sync() of team 6 and waits for PE 2"),
                      HasSubstr("PE 2 is in sync() of the active set of 2 PEs (0, stride 2) and waits")));
  }
}

TEST(CallMeeting, ComparesWithCallsThatDoNotWait) {
  Report report;
  with_meetings(2, [&](CallMeeting& meeting, Job& job) {
    for (int i = 0; i < 100; ++i) {
      meeting.announce(world(2), "arrive()");
      EXPECT_EQ(meeting.meet(world(2), "sync()"), std::nullopt);
    }
    if (job.me == 1) {
      meeting.announce(world(2), "arrive()");
    } else {
      report.take(meeting.meet(world(2), "sync()"), job);
    }
  });
  EXPECT_THAT(report.text(), HasSubstr("PE 0 calls sync(), PE 1 calls arrive()"));
}

TEST(CallMeeting, ServesAnyNumberOfTeamsOneAfterTheOther) {
  with_meetings(2, [](CallMeeting& meeting, Job& /*job*/) {
    for (int i = 0; i < test_support::repeats(300, 5000); ++i) {
      const CallSet team{2 + i % 3, {0, 1, 2}};
      EXPECT_EQ(meeting.meet(team, "sync()"), std::nullopt);
      EXPECT_EQ(meeting.meet(team, "destroy()"), std::nullopt);
      EXPECT_EQ(meeting.meet(world(2), "sync()"), std::nullopt);  // as the team's end is one
      meeting.forget(team);
    }
  });
}

TEST(CallMeeting, LeavesOutWhatItHasNoRoomFor) {
  with_meetings(2, [](CallMeeting& meeting, Job& job) {
    for (int i = 0; i < 1100; ++i) {
      const CallSet team{i, {0, 1, 2}};
      const bool kept = i < static_cast<int>(shmem::CallBoard::kMostSets);
      EXPECT_EQ(meeting.meet(team, kept || job.me == 0 ? "sync()" : "other()"), std::nullopt);
    }
  });
}

TEST(CallMeeting, EndsWithTheTimeThatBarriersHave) {
  shmem::Options options;
  options.barrier_timeout = std::chrono::milliseconds{50};
  Report report;
  with_meetings(
      2,
      [&](CallMeeting& meeting, Job& job) {
        if (job.me == 0) report.take(meeting.meet(world(2), "sync()"), job);
      },
      options);
  EXPECT_THAT(report.text(), HasSubstr("waited 50 ms (SHMEM_BARRIER_TIMEOUT) for the others of team 0; PE 1 is in no"));
}

}  // namespace
