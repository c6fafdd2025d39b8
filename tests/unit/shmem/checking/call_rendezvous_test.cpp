// SPDX-License-Identifier: Apache-2.0
#include "shmem/checking/call_rendezvous.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "shmem/layout/peers.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::CallRendezvous;
using shmem::CallSet;
using shmem::Job;
using shmem::kActiveSet;
using testing::AllOf;
using testing::HasSubstr;

CallSet world(int pes) {
  return {0, {0, 1, pes}};
}

void with_rendezvous(int pes, const std::function<void(CallRendezvous&, Job&)>& body,
                     const shmem::Options& options = {}) {
  shmem_test::run_job(
      pes,
      [&](Job& job) {
        shmem::introduce(job);
        EXPECT_TRUE(job.bootstrap->barrier());
        CallRendezvous rendezvous(job);
        body(rendezvous, job);
        EXPECT_TRUE(job.bootstrap->barrier());
      },
      options);
}

/// Keeps the report of the PE that finds a problem, and aborts the job for the others.
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

TEST(CallRendezvous, LetsEqualCallsPassInAllSets) {
  with_rendezvous(4, [](CallRendezvous& rendezvous, Job& job) {
    const CallSet pair{2, {job.me / 2 * 2, 1, 2}};
    for (int i = 0; i < test_support::repeats(100, 5000); ++i) {
      EXPECT_EQ(rendezvous.compare(world(4), "call " + std::to_string(i)), std::nullopt);
      EXPECT_EQ(rendezvous.compare(pair, "pair " + std::to_string(job.me / 2)), std::nullopt);
      if (job.me % 2 == 0) {
        EXPECT_EQ(rendezvous.compare({kActiveSet, {0, 2, 2}}, "even"), std::nullopt);
      }
    }
  });
}

TEST(CallRendezvous, NamesTheFirstMemberAndTheOneThatDiffersOnce) {
  Report report;
  with_rendezvous(4, [&](CallRendezvous& rendezvous, Job& job) {
    EXPECT_EQ(rendezvous.compare(world(4), "same"), std::nullopt);
    report.take(rendezvous.compare(world(4), job.me == 2 ? "other(1)" : "same(1)"), job);
  });
  EXPECT_EQ(report.reports(), 1);
  EXPECT_THAT(report.text(),
              HasSubstr("the PEs of team 0 do not make the same call: PE 0 calls same(1), PE 2 calls other(1)"));
}

TEST(CallRendezvous, FindsPesThatWaitForEachOtherInACycle) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    Report report;
    with_rendezvous(3, [&](CallRendezvous& rendezvous, Job& job) {
      const std::array<CallSet, 3> sets{CallSet{5, {0, 1, 2}}, CallSet{6, {1, 1, 2}}, CallSet{kActiveSet, {0, 2, 2}}};
      report.take(rendezvous.compare(sets[static_cast<std::size_t>(job.me)], "sync()"), job);
    });
    EXPECT_EQ(report.reports(), 1);
    EXPECT_THAT(report.text(),
                AllOf(HasSubstr("PE 0 is in sync() of team 5 and waits for PE 1"),
                      HasSubstr("PE 1 is in sync() of team 6 and waits for PE 2"),
                      HasSubstr("PE 2 is in sync() of the active set of 2 PEs (0, stride 2) and waits")));
  }
}

TEST(CallRendezvous, ComparesWithCallsThatDoNotWait) {
  Report report;
  with_rendezvous(2, [&](CallRendezvous& rendezvous, Job& job) {
    for (int i = 0; i < 100; ++i) {
      rendezvous.announce(world(2), "arrive()");
      EXPECT_EQ(rendezvous.compare(world(2), "sync()"), std::nullopt);
    }
    if (job.me == 1) {
      rendezvous.announce(world(2), "arrive()");
    } else {
      report.take(rendezvous.compare(world(2), "sync()"), job);
    }
  });
  EXPECT_THAT(report.text(), HasSubstr("PE 0 calls sync(), PE 1 calls arrive()"));
}

TEST(CallRendezvous, ServesAnyNumberOfTeamsOneAfterTheOther) {
  with_rendezvous(2, [](CallRendezvous& rendezvous, Job& /*job*/) {
    for (int i = 0; i < test_support::repeats(300, 5000); ++i) {
      const CallSet team{2 + i % 3, {0, 1, 2}};
      EXPECT_EQ(rendezvous.compare(team, "sync()"), std::nullopt);
      EXPECT_EQ(rendezvous.compare(team, "destroy()"), std::nullopt);
      // Stands for the call of all PEs that ends a team.
      EXPECT_EQ(rendezvous.compare(world(2), "sync()"), std::nullopt);
      rendezvous.forget(team);
    }
  });
}

TEST(CallRendezvous, DoesNotCompareCallsOfMoreSetsThanFit) {
  with_rendezvous(2, [](CallRendezvous& rendezvous, Job& job) {
    for (int i = 0; i < 1100; ++i) {
      const CallSet team{i, {0, 1, 2}};
      const bool kept = i < static_cast<int>(shmem::CallBoard::kMostSets);
      EXPECT_EQ(rendezvous.compare(team, kept || job.me == 0 ? "sync()" : "other()"), std::nullopt);
    }
  });
}

TEST(CallRendezvous, TimesOutAsBarriersDo) {
  shmem::Options options;
  options.barrier_timeout = std::chrono::milliseconds{50};
  Report report;
  with_rendezvous(
      2,
      [&](CallRendezvous& rendezvous, Job& job) {
        if (job.me == 0) {
          report.take(rendezvous.compare(world(2), "sync()"), job);
        }
      },
      options);
  EXPECT_THAT(report.text(), HasSubstr("waited 50 ms (SHMEM_BARRIER_TIMEOUT) for the others of team 0; PE 1 is in no"));
}

}  // namespace
