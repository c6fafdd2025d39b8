// SPDX-License-Identifier: Apache-2.0
// Small jobs in every order of their steps, with each fault at each step.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/openmpi/played_job.hpp"

namespace {

using fake_gba::Way;
using openmpi_test::JobShape;
using openmpi_test::Node;
using openmpi_test::PlayedJob;
using test_support::repeats;

/// Enumerates all sequences of choices, one per run.
class Odometer {
 public:
  unsigned pick(unsigned n) {
    if (n == 1) {
      return 0;
    }
    if (at_ == digits_.size()) {
      digits_.push_back({0, n});
    }
    return digits_[at_++].value;
  }
  /// Advances to the next run; false if there is none.
  bool turn() {
    at_ = 0;
    while (!digits_.empty() && digits_.back().value + 1 == digits_.back().count) {
      digits_.pop_back();
    }
    if (digits_.empty()) {
      return false;
    }
    ++digits_.back().value;
    return true;
  }

 private:
  struct Digit {
    unsigned value, count;
  };
  std::vector<Digit> digits_;
  std::size_t at_ = 0;
};

struct Fault {
  std::string name;
  std::function<void(PlayedJob& job)> happens;
};

std::vector<Fault> faults_of(const PlayedJob& job) {
  std::vector<Fault> faults = {{"the group fails", [](PlayedJob&) { fake_gba::fail_group(); }}};
  for (unsigned member = 0; member < job.size(); ++member) {
    faults.push_back({"OFF of member " + std::to_string(member),
                      [=](PlayedJob& hurt) { gba_barrier_turn_off(hurt.barrier(member).lossless, -EIO, "a test"); }});
  }
  for (const Way way : {Way::kFails, Way::kSilent, Way::kCoughs}) {
    const std::string how = ", way " + std::to_string(static_cast<int>(way));
    for (unsigned port = 0; port < job.ports(); ++port) {
      faults.push_back(
          {"loss of port " + std::to_string(port) + how, [=](PlayedJob&) { fake_gba::lose_member(port, way); }});
    }
    for (std::uint64_t mask = 0; way != Way::kCoughs && mask < std::uint64_t{1} << job.ports(); ++mask) {
      faults.push_back({"death in a release that reaches ports " + std::to_string(mask) + how,
                        [=](PlayedJob&) { fake_gba::die_in_release(mask, way); }});
    }
  }
  return faults;
}

struct Tally {
  std::uint64_t runs = 0, over = 0;
};

/// Plays all orders of steps, or the first `orders`, with `fault` before step `at`. False if all orders end earlier.
bool play_all(const JobShape& shape, const Fault& fault, unsigned at, unsigned orders, Tally& tally) {
  Odometer odometer;
  bool happened = false;
  do {
    PlayedJob job(shape, [&](unsigned n) { return odometer.pick(n); });
    const std::string result = job.play([&](unsigned step) {
      if (step == at) {
        fault.happens(job);
        happened = true;
      }
    });
    EXPECT_EQ(result, "") << fault.name << " before step " << at;
    ++tally.runs;
    tally.over += job.over_from() != 0 ? 1 : 0;
  } while (!testing::Test::HasFailure() && --orders > 0 && odometer.turn());
  return happened;
}

void explore(const std::vector<Node>& nodes, int orders, int barriers) {
  const JobShape shape{.nodes = nodes, .barriers = static_cast<std::uint64_t>(barriers), .spin_time = 2};
  Tally all;
  for (const Fault& fault : faults_of(PlayedJob(shape, [](unsigned) { return 0U; }))) {
    for (unsigned at = 0; play_all(shape, fault, at, static_cast<unsigned>(orders), all);) {
      ASSERT_LT(++at, 1000U);
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
  testing::Test::RecordProperty("runs", std::to_string(all.runs));
  EXPECT_GT(all.over, 0U);
  EXPECT_LT(all.over, all.runs);
}

constexpr int kAll = 1 << 30;

TEST(OpenMpiBarrierInEveryOrder, EachWithAPort) {
  explore({{0, 1}}, repeats(test_support::kEmulated || test_support::kSanitized ? 100 : kAll, kAll), repeats(2, 3));
}

TEST(OpenMpiBarrierInEveryOrder, OneSharesThePortOfTheOther) {
  explore({{0, 0}}, repeats(test_support::kEmulated || test_support::kSanitized ? 100 : kAll, kAll), repeats(2, 3));
}

TEST(OpenMpiBarrierInEveryOrder, OnTwoNodes) {
  explore({{0}, {0}}, repeats(test_support::kEmulated || test_support::kSanitized ? 100 : 2'000, kAll), 2);
}

}  // namespace
