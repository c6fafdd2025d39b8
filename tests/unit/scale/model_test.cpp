// SPDX-License-Identifier: Apache-2.0
// The model against what can be worked out by hand, and against itself. No test depends on how fast anything is.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "bench/scale/event_queue.hpp"
#include "bench/scale/play.hpp"
#include "bench/scale/random.hpp"

namespace scale {
namespace {

constexpr auto kMethods =
    std::to_array<Method>({Method::kCentralCounter, Method::kBasic, Method::kDissemination, Method::kRadix,
                           Method::kPull, Method::kRecursiveDoubling, Method::kTournament, Method::kNodeDissemination,
                           Method::kNodeRadix, Method::kGba, Method::kOpenMpi});

/// Every cost is another number, so that none is taken for another. Nanoseconds.
Parameters costs() {
  Parameters parameters;
  parameters.line_round_trip = 200;
  parameters.line_share = 3;
  parameters.line_read = 2;
  parameters.release_store = 7;
  parameters.doorbell_store = 40;
  parameters.switch_round_trip = 1000;
  parameters.network_latency = 500;
  parameters.network_overhead = 60;
  parameters.network_gap = 10;
  return parameters;
}

Outcome once(Method method, int members, int pes_per_node = 1, const Parameters& parameters = costs(), Work work = {}) {
  const Layout layout{.members = members, .pes_per_node = pes_per_node};
  return play(*make_program(method, layout), parameters, layout, work, 1);
}

double nanoseconds(Method method, int members, int pes_per_node = 1) {
  return 1000 * once(method, members, pes_per_node).after_last;
}

constexpr double kMessage = 60 + 500 + 60;
constexpr double kRing = 7 + 40 + 1000;

TEST(ModelTest, DisseminationTakesARoundOfMessagesForEachDoubling) {
  for (const auto& [members, expected] :
       {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {100, 7}, {708, 10}, {1025, 11}}) {
    EXPECT_DOUBLE_EQ(nanoseconds(Method::kDissemination, members), expected * kMessage) << members;
  }
}

TEST(ModelTest, InANodeARoundIsAStoreAndHalfARoundTrip) {
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kDissemination, 8, 8), 3 * (7 + 100.0));
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRecursiveDoubling, 16, 16), 4 * (7 + 100.0));
}

TEST(ModelTest, TheGbaTakesTheSameForAnyNumberOfMembersOfOneSwitch) {
  for (const int members : {2, 3, 64, 707, 708}) {
    EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, members), kRing) << members;
  }
}

TEST(ModelTest, TwoSwitchesAreTwoRoundTripsAndAMessage) {
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, 709), 2 * kRing + kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, 1416), 2 * kRing + kMessage);
}

TEST(ModelTest, ASwitchThatTakesArrivalsInTurnIsLinear) {
  Parameters parameters = costs();
  parameters.switch_arrival_gap = 2;
  parameters.switch_release_gap = 5;
  EXPECT_DOUBLE_EQ(1000 * once(Method::kGba, 100, 1, parameters).after_last, kRing + 100 * 2 + 99 * 5);
}

TEST(ModelTest, ACounterIsLinear) {
  for (const int members : {2, 5, 64}) {
    // All take the line in turn; the last one tells all others, who spin on it.
    EXPECT_DOUBLE_EQ(nanoseconds(Method::kCentralCounter, members, members),
                     members * 100 + 7 + (members - 2) * 3 + 100)
        << members;
  }
  const double far = nanoseconds(Method::kCentralCounter, 2000) - nanoseconds(Method::kCentralCounter, 1000);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kCentralCounter, 3000) - nanoseconds(Method::kCentralCounter, 2000), far);
  EXPECT_GT(far, 1000 * 60);
}

TEST(ModelTest, BasicIsLinear) {
  const double step = nanoseconds(Method::kBasic, 300) - nanoseconds(Method::kBasic, 200);
  EXPECT_GT(step, 100 * 60);
  EXPECT_NEAR(nanoseconds(Method::kBasic, 400) - nanoseconds(Method::kBasic, 300), step, step / 50);
}

TEST(ModelTest, ATournamentGoesUpAndDown) {
  // The winner of all hears once each round, and sends as often; the last one whom it tells has nobody to tell.
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kTournament, 2), 2 * kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kTournament, 4), 4 * kMessage);
}

TEST(ModelTest, OnePhaseOfNpuV2TellsAllOthersOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRadix, 2), kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRadix, 8), 7 * 60 + 500 + 60.0);
}

TEST(ModelTest, AnInterfaceSendsOneMessageAtATime) {
  // Four members of each of two nodes tell those of the other one in the last round.
  Parameters parameters = costs();
  parameters.network_gap = 100;
  const double apart = once(Method::kRecursiveDoubling, 8, 1, parameters).after_last;
  EXPECT_DOUBLE_EQ(1000 * apart, 3 * kMessage);
  EXPECT_DOUBLE_EQ(1000 * once(Method::kRecursiveDoubling, 8, 4, parameters).after_last,
                   2 * (7 + 100) + 3 * 100 + kMessage);
}

TEST(ModelTest, LevelsThatCostNothingAreNotThere) {
  Parameters parameters = costs();
  parameters.line_round_trip = parameters.line_share = parameters.line_read = parameters.release_store = 0;
  for (const int nodes : {2, 3, 16}) {
    EXPECT_DOUBLE_EQ(once(Method::kNodeDissemination, 8 * nodes, 8, parameters).after_last,
                     once(Method::kDissemination, nodes, 1, parameters).after_last)
        << nodes;
    EXPECT_DOUBLE_EQ(once(Method::kGba, 8 * nodes, 8, parameters).after_last,
                     once(Method::kGba, nodes, 1, parameters).after_last)
        << nodes;
  }
}

TEST(ModelTest, WhoComesLastIsWaitedFor) {
  const Work work{Distribution::kExponential, 5000, 3};
  Time first = work.before(0, 0);
  Time last = first;
  for (int member = 1; member < 100; ++member) {
    first = std::min(first, work.before(0, member));
    last = std::max(last, work.before(0, member));
  }
  const Outcome outcome = once(Method::kGba, 100, 1, costs(), work);
  EXPECT_NEAR(1000 * outcome.after_last, kRing, 1e-6) << "the switch does not care when the others came";
  EXPECT_NEAR(outcome.after_first - outcome.after_last, in_microseconds(last - first), 1e-6);
  EXPECT_GT(outcome.wait, outcome.after_last);
}

TEST(ModelTest, WorkHasTheMeanThatItIsGiven) {
  for (const Distribution distribution : {Distribution::kUniform, Distribution::kExponential}) {
    const Work work{distribution, 1000, 7};
    double sum = 0;
    for (int member = 0; member < 100'000; ++member) sum += static_cast<double>(work.before(2, member)) / 1000;
    EXPECT_NEAR(sum / 100'000, 1000, 20);
  }
  EXPECT_EQ((Work{Distribution::kNone, 1000, 7}.before(0, 1)), 0);
}

TEST(ModelTest, NobodyLeavesBeforeAllHaveComeInAnyMethod) {
  // play() throws if somebody does, if a member is told twice, or if a barrier does not end.
  for (const Method method : kMethods) {
    for (int members = 2; members <= 40; ++members) {
      for (const int node : {1, 3, 8}) {
        const Layout layout{.members = members, .pes_per_node = node, .ports_per_switch = 4, .radix = 3};
        const auto program = make_program(method, layout);
        EXPECT_NO_THROW(
            play(*program, costs(), layout, {Distribution::kExponential, 300, 5}, 6, method == Method::kOpenMpi))
            << name_of(method) << ", " << members << " members, " << node << " on a node";
        if (method == Method::kGba) continue;  // needs a switch
        EXPECT_NO_THROW(play_crowded(*program, costs(), 3, 1000, 6)) << name_of(method);
      }
    }
  }
}

TEST(ModelTest, TheSameSeedGivesTheSame) {
  const auto outcome = [](std::uint64_t seed) {
    const Outcome all = once(Method::kTournament, 100, 4, costs(), {Distribution::kExponential, 1000, seed});
    return std::tuple(all.after_last, all.after_first, all.wait, all.period, all.signals);
  };
  EXPECT_EQ(outcome(1), outcome(1));
  EXPECT_NE(outcome(1), outcome(2));
}

TEST(ModelTest, MoreMembersTakeNoLessTime) {
  for (const Method method : {Method::kCentralCounter, Method::kBasic, Method::kDissemination, Method::kTournament,
                              Method::kPull, Method::kNodeDissemination, Method::kGba}) {
    double before = 0;
    for (const int members : {2, 4, 8, 16, 32, 64, 128, 256}) {
      const double now = nanoseconds(method, members, 2);
      EXPECT_GE(now, before) << name_of(method) << ", " << members;
      before = now;
    }
  }
}

TEST(ModelTest, WhatCostsMoreTakesNoLessTime) {
  constexpr auto kCosts = std::to_array<double Parameters::*>(
      {&Parameters::line_round_trip, &Parameters::doorbell_store, &Parameters::switch_round_trip,
       &Parameters::switch_arrival_gap, &Parameters::network_latency, &Parameters::network_overhead,
       &Parameters::network_gap});
  for (const Method method : kMethods) {
    for (double Parameters::*const cost : kCosts) {
      Parameters dearer = costs();
      dearer.*cost += 100;
      EXPECT_GE(once(method, 60, 4, dearer).after_last, once(method, 60, 4).after_last) << name_of(method);
    }
  }
}

TEST(ModelTest, WherePesOutnumberProcessorsEachMustHaveATurn) {
  Parameters parameters;
  parameters.release_store = 1;
  const auto turns = [&parameters](Method method, int members) {
    const Layout layout{.members = members, .pes_per_node = members};
    return play_crowded(*make_program(method, layout), parameters, 2, 1000, 100) / (members / 2.0);
  };
  EXPECT_NEAR(turns(Method::kCentralCounter, 16), 1, 0.1);
  EXPECT_NEAR(turns(Method::kCentralCounter, 64), 1, 0.1);
  EXPECT_GT(turns(Method::kDissemination, 64), 2) << "a round may wait for a turn of all others";
  EXPECT_LE(turns(Method::kDissemination, 64), 6.5);
}

TEST(EventQueueTest, GivesTheEarliestAndOfEqualOnesTheFirst) {
  EventQueue queue;
  std::vector<std::pair<Time, int>> given;
  Time now = 0;
  int number = 0;
  const auto put = [&] {
    const auto later = static_cast<Time>(mixed(static_cast<std::uint64_t>(number)) % 50);
    queue.push({now + later, What::kGoOn, number++, 0, 0});
  };
  for (int i = 0; i < 300; ++i) put();
  while (!queue.empty()) {
    const Event event = queue.pop();
    given.emplace_back(event.at, event.member);
    now = event.at;
    for (int i = 0; i < 2 && number < 3000; ++i) put();
  }
  EXPECT_EQ(given.size(), 3000U);
  EXPECT_TRUE(std::ranges::is_sorted(given));
}

}  // namespace
}  // namespace scale
