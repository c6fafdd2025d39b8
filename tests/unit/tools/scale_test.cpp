// SPDX-License-Identifier: Apache-2.0
// The model compared with results worked out by hand, and with itself. No test measures time.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/support/text.hpp"
#include "tools/scale/model.hpp"

namespace scale {
namespace {

constexpr auto kMethods =
    std::to_array<Method>({Method::kCentralCounter, Method::kBasic, Method::kDissemination, Method::kRadix,
                           Method::kPull, Method::kRecursiveDoubling, Method::kTournament, Method::kNodeDissemination,
                           Method::kNodeRadix, Method::kGba, Method::kOpenMpi});

/// In nanoseconds. All costs differ, so that a test notices if the model mixes them up.
Parameters costs() {
  return {.line_round_trip = 200,
          .line_share = 3,
          .line_read = 2,
          .release_store = 7,
          .doorbell_store = 40,
          .switch_round_trip = 1000,
          .ports_per_switch = 708,
          .network_latency = 500,
          .network_overhead = 60,
          .network_gap = 10,
          .radix = 8};
}

double nanoseconds(Method method, int members, int pes_per_node = 1, const Parameters& parameters = costs()) {
  return 1000 * time_of(method, parameters, members, pes_per_node);
}

constexpr double kMessage = 60 + 500 + 60;
constexpr double kRing = 7 + 40 + 1000;

TEST(ScaleModel, DisseminationTakesOneSignalForEachDoubling) {
  for (const auto& [members, expected] :
       {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {100, 7}, {708, 10}, {1025, 11}}) {
    EXPECT_DOUBLE_EQ(nanoseconds(Method::kDissemination, members), expected * kMessage) << members;
  }
  // On a node a round is a store and half a round trip.
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kDissemination, 8, 8), 3 * (7 + 100.0));
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRecursiveDoubling, 16, 16), 4 * (7 + 100.0));
}

TEST(ScaleModel, TheGbaTakesTheSameTimeForAllSizesOfOneSwitch) {
  for (const int members : {2, 3, 64, 707, 708}) {
    EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, members), kRing) << members;
  }
  // Two switches take two round trips and a message.
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, 709), 2 * kRing + kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, 1416), 2 * kRing + kMessage);
}

TEST(ScaleModel, ASwitchThatProcessesArrivalsOneByOneIsLinear) {
  Parameters parameters = costs();
  parameters.switch_arrival_gap = 2;
  parameters.switch_release_gap = 5;
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kGba, 100, 1, parameters), kRing + 100 * 2 + 99 * 5);
}

TEST(ScaleModel, ACounterIsLinear) {
  for (const int members : {2, 5, 64}) {
    // All members update the line in turn; the last one releases the others, which spin on it.
    EXPECT_DOUBLE_EQ(nanoseconds(Method::kCentralCounter, members, members),
                     members * 100 + 7 + (members - 2) * 3 + 100)
        << members;
  }
  const double remote = nanoseconds(Method::kCentralCounter, 2000) - nanoseconds(Method::kCentralCounter, 1000);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kCentralCounter, 3000) - nanoseconds(Method::kCentralCounter, 2000), remote);
  EXPECT_GT(remote, 1000 * 60);
}

TEST(ScaleModel, TheOtherAlgorithmsAreTheSumOfTheirSteps) {
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kTournament, 2), 2 * kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kTournament, 4), 4 * kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRadix, 2), kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRadix, 8), 7 * 60 + 500 + 60.0);
  const double step = nanoseconds(Method::kBasic, 300) - nanoseconds(Method::kBasic, 200);
  EXPECT_GT(step, 100 * 60);
  EXPECT_NEAR(nanoseconds(Method::kBasic, 400) - nanoseconds(Method::kBasic, 300), step, step / 50);
}

TEST(ScaleModel, AnInterfaceSendsOneMessageAtATime) {
  // In the last round the four members of each node signal those of the other node.
  Parameters parameters = costs();
  parameters.network_gap = 100;
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRecursiveDoubling, 8, 1, parameters), 3 * kMessage);
  EXPECT_DOUBLE_EQ(nanoseconds(Method::kRecursiveDoubling, 8, 4, parameters), 2 * (7 + 100) + 3 * 100 + kMessage);
}

TEST(ScaleModel, NoMemberLeavesBeforeTheLastOneHasArrived) {
  // time_of() throws if one does, if a member is signalled twice, or if a barrier does not end.
  for (const Method method : kMethods) {
    for (int members = 2; members <= 24; ++members) {
      for (const int node : {1, 3, 8}) {
        const auto algorithm =
            make_algorithm(method, {.members = members, .pes_per_node = node, .ports_per_switch = 4, .radix = 3});
        for (int late = 0; late < members; ++late) {
          EXPECT_NO_THROW(time_of(*algorithm, costs(), node, method == Method::kOpenMpi, {late, 1e6}))
              << name_of(method) << ", " << members << " members, " << node << " on a node, " << late << " late";
        }
      }
    }
  }
}

TEST(ScaleModel, MoreMembersAndHigherCostsTakeNoLessTime) {
  for (const Method method : {Method::kCentralCounter, Method::kBasic, Method::kDissemination, Method::kTournament,
                              Method::kPull, Method::kNodeDissemination, Method::kGba}) {
    double before = 0;
    for (const int members : {2, 4, 8, 16, 32, 64, 128, 256}) {
      const double now = nanoseconds(method, members, 2);
      EXPECT_GE(now, before) << name_of(method) << ", " << members;
      before = now;
    }
  }
  for (const Method method : kMethods) {
    for (double Parameters::*const cost :
         {&Parameters::line_round_trip, &Parameters::doorbell_store, &Parameters::switch_round_trip,
          &Parameters::network_latency, &Parameters::network_overhead, &Parameters::network_gap}) {
      Parameters higher = costs();
      higher.*cost += 100;
      EXPECT_GE(nanoseconds(method, 60, 4, higher), nanoseconds(method, 60, 4)) << name_of(method);
    }
  }
}

std::string committed() {
  std::ifstream in(SCALE_PARAMETERS);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(const std::string& text) {
  try {
    read_parameters("FILE", text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ScaleParameters, TheCommittedFileIsRead) {
  const Parameters parameters = read_parameters("parameters.txt", committed());
  EXPECT_EQ(parameters.ports_per_switch, 708);
}

TEST(ScaleParameters, AWrongLineIsRefusedWithItsNumberAndKey) {
  for (const auto& [line, message] : {std::pair{"radix 9 count assumed", "radix is a number from 2 to 8, not \"9\""},
                                      {"radix 4x count assumed", "not \"4x\""},
                                      {"radix 8 count", "radix: a line is a key"},
                                      {"other 8 count assumed", "there is no parameter other"},
                                      {"line_read 8 ns assumed", "line_read is repeated"}}) {
    const std::string text = refusal(test_support::replace_all(committed(), "radix [^\n]*", line));
    EXPECT_TRUE(test_support::has_match(text, "FILE, line [0-9]+: ")) << text;
    EXPECT_NE(text.find(message), std::string::npos) << text;
  }
  EXPECT_EQ(refusal("# one\n\nnone 1 ns assumed x\n"), "FILE, line 3: there is no parameter none");
  EXPECT_EQ(refusal(test_support::replace_all(committed(), "radix [^\n]*", "")), "FILE has no radix");
}

}  // namespace
}  // namespace scale
