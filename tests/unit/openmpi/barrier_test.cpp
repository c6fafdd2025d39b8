// SPDX-License-Identifier: Apache-2.0
// The barriers of the Open MPI components, with all members simulated in one thread: no member leaves a barrier before
// all have entered it, and no barrier is lost, whatever happens to the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>

#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/openmpi/played_job.hpp"

namespace {

using fake_gba::Way;
using openmpi_test::JobShape;
using openmpi_test::Node;
using openmpi_test::PlayedJob;

constexpr std::uint64_t k2To32 = std::uint64_t{1} << 32;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) { engine_.discard(3); }
  unsigned operator()(unsigned n) { return static_cast<unsigned>(engine_() / 7 % n); }

 private:
  std::minstd_rand engine_;
};

const auto kNothing = [](unsigned) {};

TEST(OpenMpiBarrier, IsReleasedByAHealthyDevice) {
  const std::vector<std::vector<Node>> jobs = {{{0}},    {{0, 1}},   {{0, 0}},         {{0, 1, 0, 1, 0}},
                                               {{1, 1}}, {{0}, {0}}, {{0, 1}, {0, 0}}, {{0, 1, 2}, {0}, {1, 1, 1}}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobShape shape{.nodes = jobs[i], .before = k2To32 - 20, .barriers = 40};
    PlayedJob job(shape, Random(static_cast<unsigned>(i)));
    EXPECT_EQ(job.play(kNothing), "") << "job " << i;
    EXPECT_EQ(fake_gba::releases(), shape.barriers) << "job " << i;
    EXPECT_EQ(job.over_from(), 0U) << "job " << i;
    for (std::size_t member = 0; member < job.size(); ++member) {
      EXPECT_EQ(job.barrier(member).by_device, shape.barriers) << "job " << i << ", member " << member;
      EXPECT_STREQ(job.status(member).trouble, "");
    }
  }
}

Node random_node(Random& random, unsigned locals) {
  const unsigned holders = 1 + random(locals);
  const unsigned shift = random(locals);  // so that the leader may be a member that shares a port
  Node node(locals);
  for (unsigned i = 0; i < locals; ++i) {
    node[(i + shift) % locals] = ((i < holders ? i : random(holders)) + shift) % locals;
  }
  return node;
}

JobShape random_shape(Random& random) {
  JobShape shape{.before = random(2) == 0 ? 0 : k2To32 - random(8), .barriers = 2 + random(9)};
  const unsigned nodes = 1 + random(3);
  for (unsigned node = 0, left = std::max(nodes, 1 + random(8)); node < nodes; ++node) {
    const unsigned here = node + 1 == nodes ? left : 1 + random(left - (nodes - node - 1));
    shape.nodes.push_back(random_node(random, here));
    left -= here;
  }
  shape.spin_time = 1 + static_cast<int>(random(2) == 0 ? random(4) : random(200));
  shape.slow = random(2) == 0 ? 0 : -1;
  shape.interleaved_one_in = random(2) == 0 ? 1 + random(6) : 0;
  return shape;
}

Way random_way(Random& random) {
  constexpr Way kWays[] = {Way::kFails, Way::kSilent, Way::kCoughs};
  return kWays[random(3)];
}

/// Injects a random fault.
void hurt(PlayedJob& job, Random& random) {
  switch (random(5)) {
    case 0:
      return fake_gba::fail_group();
    case 1:
      return fake_gba::lose_member(random(job.ports()), random_way(random));
    case 2:
      for (unsigned port = 0; port < job.ports(); ++port) {
        fake_gba::lose_member(port, random(3) == 0 ? Way::kFails : Way::kSilent);
      }
      return;
    case 3:
      return fake_gba::die_in_release(random(1U << job.ports()), random(2) == 0 ? Way::kFails : Way::kSilent);
    default:
      return gba_barrier_turn_off(job.barrier(random(static_cast<unsigned>(job.size()))).lossless, -EIO, "a test");
  }
}

TEST(OpenMpiBarrier, IsNeverLostWhateverHappensToTheDevice) {
  int over = 0;
  const int jobs =
      test_support::repeats(test_support::kEmulated || test_support::kSanitized ? 2'000 : 20'000, 1'000'000);
  for (int seed = 1; seed <= jobs; ++seed) {
    Random random(static_cast<unsigned>(seed));
    const JobShape shape = random_shape(random);
    PlayedJob job(shape, [&](unsigned n) { return random(n); });
    const unsigned first = random(60);
    const unsigned second = first + random(60);
    const std::string result = job.play([&](unsigned step) {
      if (step == first || (step == second && seed % 2 == 0)) {
        hurt(job, random);
      }
    });
    ASSERT_EQ(result, "") << "seed " << seed;
    over += job.over_from() != 0 ? 1 : 0;
  }
  EXPECT_GT(over, jobs / 4);
  EXPECT_LT(over, jobs);
}

unsigned first(unsigned /*n*/) {
  return 0;
}

TEST(OpenMpiBarrierCalls, NameTheMissingMembers) {
  JobShape shape{.nodes = {Node(70)}};
  PlayedJob job(shape, first);
  for (const std::size_t member : {0U, 1U, 68U}) {
    gba_ompi_barrier_start(&job.barrier(member));
  }
  std::uint64_t mask[GBA_GROUP_MASK_WORDS] = {7, 7, 7};
  ASSERT_EQ(gba_barrier_missing(job.barrier(0).lossless, mask), 0);
  EXPECT_EQ(mask[0], ~std::uint64_t{3});
  EXPECT_EQ(mask[1], 0x2FU);
  EXPECT_EQ(mask[2], 0U);
}

TEST(OpenMpiBarrierCalls, RememberTheReasonOfThisMember) {
  PlayedJob job({.nodes = {{0, 1, 1}}}, first);
  for (const std::size_t member : {0U, 1U, 2U}) {
    gba_ompi_barrier_start(&job.barrier(member));
    EXPECT_STREQ(job.status(member).trouble, "");
  }
  fake_gba::lose_member(1, Way::kFails);
  EXPECT_EQ(gba_ompi_barrier_test(&job.barrier(1)), 0) << "its doorbell is lost, but all have arrived";
  EXPECT_EQ(job.status(1).failure, -ENODEV);
  EXPECT_STREQ(job.status(1).trouble, "the device is lost");
  EXPECT_EQ(gba_ompi_barrier_test(&job.barrier(2)), 0);
  EXPECT_EQ(job.status(2).failure, 0);
  EXPECT_STREQ(job.status(2).trouble, "another member lost the device");
  EXPECT_EQ(job.barrier(2).by_words, 1U);
  EXPECT_FALSE(job.barrier(2).over) << "member 0 may not know yet";
}

TEST(OpenMpiBarrierCalls, SleepIsShortWithoutAnOpenBarrierOrWithoutADevice) {
  PlayedJob job({.nodes = {{0, 0}}}, first);
  gba_ompi_barrier_t& sharer = job.barrier(1);
  EXPECT_EQ(gba_ompi_barrier_test(&sharer), 0);
  EXPECT_EQ(gba_ompi_barrier_sleep(&sharer, UINT64_MAX), 0);
  gba_ompi_barrier_start(&sharer);
  EXPECT_EQ(gba_ompi_barrier_sleep(&sharer, UINT64_MAX), -EAGAIN) << "sleeps a millisecond, not without end";
  gba_ompi_barrier_start(&job.barrier(0));
  EXPECT_EQ(gba_ompi_barrier_sleep(&job.barrier(0), UINT64_MAX), 0);
  EXPECT_EQ(gba_ompi_barrier_sleep(&sharer, 0), 0);
}

TEST(OpenMpiBarrierCalls, TurnOffBetweenBarriers) {
  PlayedJob job({.nodes = {{0, 1}}}, first);
  gba_barrier_turn_off(job.barrier(0).lossless, -ENETDOWN, "");
  EXPECT_STREQ(job.status(0).trouble, "Network is down");
  gba_ompi_barrier_start(&job.barrier(0));
  gba_ompi_barrier_start(&job.barrier(1));
  for (const std::size_t member : {0U, 1U}) {
    EXPECT_EQ(gba_ompi_barrier_test(&job.barrier(member)), 0);
    EXPECT_TRUE(job.barrier(member).over);
  }
  EXPECT_EQ(fake_gba::releases(), 0U);
}

}  // namespace
