// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/barrier_trials.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>
#include <set>

#include "shmem/runtime/barrier_selector.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Algorithm;
using shmem::BarrierChoice;
using shmem::BarrierTrials;
using shmem::MeasuredBarrier;
using Duration = BarrierTrials::Duration;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr BarrierChoice kTable{.algorithm = Algorithm::kCentralCounter, .tuning = {.radix = 4}};

struct TimedMachine {
  std::map<Algorithm, Duration> trials;
  Duration first_ones_more{};  // the first round's trials are slower
};

struct Outcome {
  Algorithm algorithm;
  int trials;
  Duration total;
};

/// Makes the trials of a team of this size on a machine where each takes the same time.
Outcome run(const TimedMachine& machine, int members = 2) {
  BarrierTrials trials = BarrierTrials::among(kTable, members);
  Outcome outcome{};
  for (;;) {
    const BarrierChoice choice = trials.next();
    EXPECT_EQ(choice.tuning.radix, kTable.tuning.radix);
    if (!choice.trial) {
      outcome.algorithm = choice.algorithm;
      return outcome;
    }
    const Duration took =
        machine.trials.at(choice.algorithm) + (outcome.trials < 3 ? machine.first_ones_more : Duration{});
    ++outcome.trials;
    outcome.total += took;
    trials.note(took, outcome.total);
  }
}

TEST(BarrierTrials, FindTheFastestOfEachMachine) {
  const auto chosen = [](int central, int npu_v3, int dissemination) {
    return run({{{Algorithm::kCentralCounter, nanoseconds{central * 16}},
                 {Algorithm::kNpuV3, nanoseconds{npu_v3 * 16}},
                 {Algorithm::kDissemination, nanoseconds{dissemination * 16}}}})
        .algorithm;
  };
  // Two states of one virtual machine.
  EXPECT_EQ(chosen(97, 53, 63), Algorithm::kNpuV3);
  EXPECT_EQ(chosen(174, 267, 248), Algorithm::kCentralCounter);
  EXPECT_EQ(chosen(90, 80, 60), Algorithm::kDissemination);
  EXPECT_EQ(chosen(97, 95, 94), Algorithm::kCentralCounter) << "the difference is noise";
}

TEST(BarrierTrials, TryOthersInLargeTeams) {
  const TimedMachine machine{{{Algorithm::kCentralCounter, microseconds{5}},
                              {Algorithm::kDissemination, microseconds{2}},
                              {Algorithm::kRecursiveDoubling, microseconds{3}},
                              {Algorithm::kNpuV2, microseconds{3}}}};
  EXPECT_EQ(run(machine, 16).algorithm, Algorithm::kDissemination);
}

TEST(BarrierTrials, TakeTheLeastOfSeveral) {
  const Outcome outcome = run({{{Algorithm::kCentralCounter, microseconds{3}},
                                {Algorithm::kNpuV3, microseconds{1}},
                                {Algorithm::kDissemination, microseconds{2}}},
                               microseconds{10}});
  EXPECT_EQ(outcome.algorithm, Algorithm::kNpuV3);
  EXPECT_EQ(outcome.trials, 3 * (1 + BarrierTrials::kMost));
}

TEST(BarrierTrials, EndWithinTheBudget) {
  const Outcome outcome = run({{{Algorithm::kCentralCounter, microseconds{19}},
                                {Algorithm::kNpuV3, microseconds{18}},
                                {Algorithm::kDissemination, microseconds{17}}}});
  const Duration first_round = microseconds{19 + 18 + 17};
  EXPECT_LE(outcome.total, first_round + BarrierTrials::kBudget);
  EXPECT_GE(outcome.trials, 9);
}

TEST(BarrierTrials, LeaveAMachineThatIsTooSlowToTheTable) {
  // Another program has the processors: one trial shows it.
  const Outcome outcome =
      run({{{Algorithm::kCentralCounter, microseconds{4000}}, {Algorithm::kNpuV3, microseconds{1}}}});
  EXPECT_EQ(outcome.algorithm, kTable.algorithm);
  EXPECT_EQ(outcome.trials, 1);
  // Not all could be tried twice.
  const Outcome few = run({{{Algorithm::kCentralCounter, microseconds{60}},
                            {Algorithm::kNpuV3, microseconds{1}},
                            {Algorithm::kDissemination, microseconds{60}}}});
  EXPECT_EQ(few.algorithm, kTable.algorithm);
}

TEST(BarrierTrials, AreNotMadeForOneChoice) {
  const BarrierTrials trials(kTable);
  EXPECT_FALSE(trials.next().trial);
  EXPECT_EQ(trials.next().algorithm, kTable.algorithm);
  EXPECT_FALSE(trials.result());
}

TEST(MeasuredBarrier, IsKeptInAWord) {
  std::atomic<std::uint64_t> word{0};
  MeasuredBarrier measured(word);
  EXPECT_FALSE(measured.load());
  for (const auto& spec : shmem::kAlgorithms) {
    measured.store({spec.algorithm, nanoseconds{0}});
    ASSERT_TRUE(measured.load());
    EXPECT_EQ(measured.load()->algorithm, spec.algorithm);
  }
  measured.store({Algorithm::kNpuV3, nanoseconds{53}});
  EXPECT_EQ(measured.load()->each, nanoseconds{53});
}

TEST(MeasuredBarrier, IsSharedByTeamsOfAboutTheSameSize) {
  EXPECT_EQ(MeasuredBarrier::index(3), MeasuredBarrier::index(4));
  std::set<std::size_t> different;
  for (const int members : {2, 4, 8, 16, 708, 16384}) {
    different.insert(MeasuredBarrier::index(members));
    EXPECT_LT(MeasuredBarrier::index(members), shmem::kMeasuredBarriers);
  }
  EXPECT_EQ(different.size(), 6U);
}

/// Gives two teams of two PEs their barriers and returns the algorithms that PE 0 has got; all members get the same
/// ones, and synchronise by them. `known`: what a team has measured before.
std::vector<Algorithm> equip_two_teams(const shmem::Options& options, std::optional<Algorithm> known = {}) {
  std::mutex door;
  std::vector<std::vector<Algorithm>> chosen(2);
  shmem_test::run_job(
      2,
      [&](shmem::Job& job) {
        job.processors = 2;
        if (known && job.me == 0) {
          MeasuredBarrier(job.metadata(0).measured_barriers[MeasuredBarrier::index(2)]).store({*known, nanoseconds{1}});
        }
        ASSERT_TRUE(job.bootstrap->barrier());
        shmem::BarrierSelector selector(job);
        ASSERT_TRUE(selector.load_tables());
        for (int slot = 0; slot < 2; ++slot) {
          shmem::LocalTeam team(job, shmem::TeamMap{0, 1, 2}, slot, 0);
          ASSERT_TRUE(selector.equip_set(team));
          EXPECT_FALSE(team.barrier_choice().trial);
          EXPECT_EQ(team.stats().total(), 0U) << "trials do not count";
          ASSERT_TRUE(team.sync());
          const std::lock_guard lock(door);
          chosen[static_cast<std::size_t>(job.me)].push_back(team.barrier_choice().algorithm);
        }
      },
      options);
  EXPECT_EQ(chosen[0], chosen[1]);
  return chosen[0];
}

TEST(BarrierSelector, ChoosesAlikeOnAllMembers) {
  const std::set<Algorithm> contenders{Algorithm::kCentralCounter, Algorithm::kNpuV3, Algorithm::kDissemination};
  for (const Algorithm algorithm : equip_two_teams({})) {
    EXPECT_TRUE(contenders.contains(algorithm));
  }
}

TEST(BarrierSelector, TakesWhatAnotherTeamHasMeasured) {
  const std::vector<Algorithm> both(2, Algorithm::kTournament);
  EXPECT_EQ(equip_two_teams({}, Algorithm::kTournament), both);
}

TEST(BarrierSelector, MeasuresNothingIfTheUserChooses) {
  const std::vector<Algorithm> table(2, Algorithm::kCentralCounter);
  shmem::Options built_in;
  built_in.barrier_tuning = "built-in";
  EXPECT_EQ(equip_two_teams(built_in, Algorithm::kTournament), table);
  shmem::Options basic;
  basic.barrier_algorithm = "basic";
  EXPECT_EQ(equip_two_teams(basic, Algorithm::kTournament), std::vector<Algorithm>(2, Algorithm::kBasic));
}

}  // namespace
