// SPDX-License-Identifier: Apache-2.0
// Barriers through a device that fails: none is lost and none ends early, in each shape of barrier.
// (uapi/README.md, "Losing the device") The callers' tests check only what each caller adds. The barriers of
// tests/unit/openmpi/exhaustive_test.cpp do the same in every order of their steps.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "tests/support/soak.hpp"
#include "tests/unit/driver/barrier_job.hpp"
#include "tests/unit/shmem/fake_gba.hpp"

namespace {

using barrier_test::Job;
using barrier_test::Member;
using barrier_test::Shape;

constexpr std::uint64_t kBefore = (std::uint64_t{1} << 32) - 30;  // so that sequences pass 2^32

class Barriers : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { fake_gba::power_on(32); }

  /// `rounds` barriers of `size` members, every third one by polling. With `in_step`, no member enters a barrier
  /// before all have left the previous one. Returns how many barriers the members completed in software, in total.
  std::uint64_t run(std::uint32_t size, std::uint64_t rounds, bool in_step = false) {
    Job job(GetParam(), size, false);
    job.run([&](Member& member) {
      ASSERT_TRUE(member.agree(kBefore));
      for (std::uint64_t k = kBefore + 1; k <= kBefore + rounds; ++k) {
        k % 3 == 0 ? member.barrier_by_polling(k) : member.barrier(k);
        if (in_step) {
          job.sync();
        }
      }
      member.give_back();
    });
    EXPECT_EQ(job.early(), 0);
    EXPECT_EQ(job.by_device() + job.in_software(), size * rounds);
    EXPECT_EQ(fake_gba::groups_in_use(), 0) << "the group is freed";
    EXPECT_EQ(fake_gba::violation(), "");
    return job.in_software();
  }

  /// The same many times, with a new seed each time, and every other time with 2 to 5 members unless they share ports.
  /// At least one run must lose the device.
  void run_often(void (*cause)(), std::uint32_t size, std::uint64_t rounds, bool in_step = false) {
    std::uint64_t in_software = 0;
    const bool all_sizes = GetParam() != Shape::kShared;
    const int seeds = all_sizes ? test_support::repeats(40, 2000) : test_support::repeats(20, 1000);
    for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(seeds); ++seed) {
      fake_gba::power_on(32);
      cause();
      in_software += run(all_sizes && seed % 2 != 0 ? 2 + seed / 2 % 4 : size, rounds, in_step);
    }
    EXPECT_GT(in_software, 0U);
  }
};

TEST_P(Barriers, AreReleasedByAHealthyDevice) {
  EXPECT_EQ(run(4, 200), 0U);
  EXPECT_EQ(fake_gba::releases(), 200U);
}

TEST_P(Barriers, AreNotLostWhenTheDeviceDies) {
  run_often([] { fake_gba::lose_device_at_random(60); }, 4, 60);
}

TEST_P(Barriers, AreNotLostWhenSomeMembersCannotReachTheDevice) {
  run_often([] { fake_gba::lose_members(80); }, 5, 80);
}

TEST_P(Barriers, AreNotLostWhenOneMemberLeavesAlone) {
  run_often([] { fake_gba::lose_members(20); }, 4, 20, true);
}

TEST_P(Barriers, SwitchToSoftwareForAllMembersAtOnce) {
  Job job(GetParam(), 4, false);
  job.run([&](Member& member) {
    ASSERT_TRUE(member.agree(0));
    for (std::uint64_t k = 1; k <= 10; ++k) {
      EXPECT_EQ(member.barrier(k), GBA_BARRIER_RELEASED);
    }
    job.sync();
    if (member.me() == 0) {
      fake_gba::lose_device();
    }
    job.sync();
    // All members notice the loss in barrier 11 and publish it in barrier 12. From then on they use software only.
    EXPECT_EQ(member.barrier(11), GBA_BARRIER_COMPLETED);
    EXPECT_TRUE(member.uses_device());
    EXPECT_EQ(member.barrier(12), GBA_BARRIER_COMPLETED);
    EXPECT_FALSE(member.uses_device());
    EXPECT_STRNE(member.status().trouble, "");
    EXPECT_EQ(member.status().served, 10U);
    for (std::uint64_t k = 13; k < 20; ++k) {
      EXPECT_EQ(member.barrier(k), GBA_BARRIER_COMPLETED);
    }
    EXPECT_EQ(member.status().in_software, 9U);
  });
  EXPECT_EQ(job.early(), 0);
}

TEST_P(Barriers, DoNotUseTheDeviceIfOneMemberCannotJoin) {
  fake_gba::refuse_member(1);
  Job job(GetParam(), 4, false);
  job.run([&](Member& member) {
    EXPECT_FALSE(member.agree(0));
    EXPECT_FALSE(member.uses_device());
    for (std::uint64_t k = 1; k < 10; ++k) {
      EXPECT_EQ(member.barrier(k), GBA_BARRIER_COMPLETED);
    }
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST_P(Barriers, FollowAMemberThatTurnsTheDeviceOff) {
  // With shared ports, member 3 is behind the port of member 2, which must not ring for it.
  for (const std::uint32_t off : {2U, 3U}) {
    fake_gba::power_on(32);
    Job job(GetParam(), 4, false);
    job.run([&](Member& member) {
      ASSERT_TRUE(member.agree(0));
      EXPECT_EQ(member.barrier(1), GBA_BARRIER_RELEASED);
      // An alarm counts in every barrier of the group: without sync(), it would also reach members still in barrier 1.
      job.sync();
      if (member.me() == off) {
        gba_barrier_turn_off(member.barrier(), -EIO, "the test says so");
        EXPECT_STREQ(member.status().trouble, "the test says so");
        EXPECT_EQ(member.status().failure, -EIO);
        while (fake_gba::arrivals() < (GetParam() == Shape::kShared ? 3U : 7U)) {
          std::this_thread::yield();  // until all ports but this one's have rung twice
        }
      }
      EXPECT_EQ(member.barrier(2), GBA_BARRIER_COMPLETED);
      EXPECT_FALSE(member.uses_device());
      EXPECT_EQ(member.status().failure == -EIO, member.me() == off);
    });
    EXPECT_EQ(fake_gba::releases(), 1U);
  }
}

std::string name_of(const testing::TestParamInfo<Shape>& shape) {
  constexpr std::array kNames{"SharedMemory", "Network", "SharedPorts"};
  return kNames[static_cast<std::size_t>(shape.param)];
}
INSTANTIATE_TEST_SUITE_P(All, Barriers, testing::Values(Shape::kMemory, Shape::kNetwork, Shape::kShared), name_of);

/// Members whose group is in use run `body`; member 0 first sets up the failures of `cause`, which may meet the others
/// in `body`. The device can be opened again, for three more groups.
void with_trouble(std::uint32_t size, const std::function<void()>& cause,
                  const std::function<void(Job& job, Member& member)>& body) {
  fake_gba::power_on(3);
  fake_gba::return_at_open(0);
  Job job(Shape::kMemory, size, true);
  job.run([&](Member& member) {
    ASSERT_TRUE(member.agree(0));
    job.sync();
    if (member.me() == 0) {
      cause();
    }
    body(job, member);
    member.give_back();
  });
  EXPECT_EQ(job.early(), 0);
  EXPECT_GT(job.in_software(), 0U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
  EXPECT_EQ(fake_gba::violation(), "");
}

/// Runs `rounds` barriers in trouble, then as many as it takes to use the device again.
void run_through_trouble(std::uint32_t size, std::uint64_t rounds, const std::function<void()>& cause) {
  std::atomic<bool> too_late{false};
  with_trouble(size, cause, [&](Job& job, Member& member) {
    std::uint64_t k = 1;
    for (; k <= rounds; ++k) {
      member.barrier(k);
    }
    job.sync();
    if (member.me() == 0) {
      fake_gba::lose_members(0);
      fake_gba::lose_device_at_random(0);
      fake_gba::return_at_open(0);
      fake_gba::refuse_member(-1);
    }
    job.sync();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{100};
    for (; !member.uses_device() && !too_late; ++k) {
      member.barrier(k);
      too_late = too_late || (member.me() == 0 && std::chrono::steady_clock::now() > deadline);
      job.sync();
    }
    ASSERT_FALSE(too_late) << "not in use again after 100 s";
    EXPECT_EQ(fake_gba::leaves_by(std::this_thread::get_id()), 0);
    for (const std::uint64_t last = k + 100; k < last; ++k) {
      member.barrier(k);
    }
    EXPECT_GT(member.status().by_device, 0U);
  });
}

std::uint64_t rounds() {
  return static_cast<std::uint64_t>(test_support::repeats(1000, 50000));
}

TEST(Recovery, UsesARestartedDeviceAgain) {
  run_through_trouble(4, 300, [] { fake_gba::lose_device(); });
}

TEST(Recovery, LosesNoBarrierWhenTheDeviceFailsAndReturnsRepeatedly) {
  for (std::uint32_t size = 2; size <= 5; ++size) {
    run_through_trouble(size, rounds(), [] { fake_gba::lose_device_at_random(150); });
  }
}

TEST(Recovery, LosesNoBarrierWhenAllPartsFailAtRandom) {
  for (std::uint32_t size = 2; size <= 5; ++size) {
    run_through_trouble(size, rounds(), [] {
      fake_gba::lose_device_at_random(200);
      fake_gba::lose_members(200);
      fake_gba::return_at_open(3);
    });
  }
}

// Leaving a device that does not answer takes until the time limit for its answers. The other tests of Recovery see to
// it that this thread leaves groups, too, that were not used because a member was not ready.
TEST(Recovery, LeavesALostDeviceOnAThreadOfItsOwn) {
  with_trouble(3, fake_gba::lose_device, [](Job& job, Member& member) {
    job.sync();
    for (std::uint64_t k = 1; k < 1'000'000 && (k < 10 || !member.uses_device()); ++k) {
      member.barrier(k);
      job.sync();
    }
    EXPECT_TRUE(member.uses_device());
    EXPECT_EQ(fake_gba::leaves_by(std::this_thread::get_id()), 0);
    job.sync();
  });
}

// A program that makes few barriers would be without a device that is there for long.
TEST(Recovery, TakesFewBarriersIfTheDeviceIsThere) {
  constexpr std::uint64_t kServed = 2000;  // after fewer, the next group is asked for later
  fake_gba::power_on(3);
  Job job(Shape::kMemory, 3, true);
  job.run([&](Member& member) {
    ASSERT_TRUE(member.agree(0));
    std::uint64_t k = 1;
    for (; k <= kServed; ++k) {
      member.barrier(k);
    }
    job.sync();
    if (member.me() == 1) {
      gba_barrier_turn_off(member.barrier(), -EIO, "the test says so");
    }
    for (; member.uses_device(); ++k) {
      member.barrier(k);
    }
    EXPECT_EQ(gba_barrier_port_await(member.port(), 20'000'000'000), 0);
    job.sync();
    const std::uint64_t in_software = member.status().in_software;
    for (; !member.uses_device() && k < 2 * kServed; ++k) {
      member.barrier(k);
    }
    EXPECT_TRUE(member.uses_device());
    EXPECT_LE(member.status().in_software - in_software, 12U);
    member.give_back();
  });
}

TEST(Recovery, AsksNoMoreIfTheCallerNeverWantsToRetry) {
  constexpr std::uint64_t kMore = 100;
  fake_gba::power_on(2);
  Job job(Shape::kMemory, 2, true, UINT64_MAX);
  job.run([&](Member& member) {
    ASSERT_TRUE(member.agree(0));
    if (member.me() == 1) {
      gba_barrier_turn_off(member.barrier(), -EIO, "the test says so");
    }
    std::uint64_t k = 1;
    for (; member.uses_device(); ++k) {
      member.barrier(k);
    }
    EXPECT_EQ(gba_barrier_port_await(member.port(), 20'000'000'000), 0);
    job.sync();
    for (const std::uint64_t end = k + kMore; k < end; ++k) {
      member.barrier(k);
      EXPECT_FALSE(member.uses_device());
    }
  });
}

TEST(Recovery, WaitsForAMemberThatCannotJoin) {
  run_through_trouble(3, 1000, [] {
    fake_gba::lose_device();
    fake_gba::refuse_member(1);
  });
}

// Uapi rule 32: READY is no guarantee. All members have said it, and then the device fails.
TEST(Recovery, LosesNoBarrierToAFailureAfterAllMembersWereReady) {
  with_trouble(3, fake_gba::lose_device, [](Job& job, Member& member) {
    job.sync();
    std::uint64_t k = 1;
    for (; member.uses_device(); ++k) {
      member.barrier(k);
    }
    for (; !member.uses_device() && k < 1'000'000; ++k) {
      member.barrier(k);
    }
    EXPECT_EQ(k % GBA_BARRIER_PERIOD, 1U);
    job.sync();
    if (member.me() == 2) {
      fake_gba::lose_device();
    }
    job.sync();
    EXPECT_EQ(member.barrier(k), GBA_BARRIER_COMPLETED) << "pulled (rule 27)";
    EXPECT_EQ(member.barrier(k + 1), GBA_BARRIER_COMPLETED);
    EXPECT_FALSE(member.uses_device()) << "all have said OFF (rule 28)";
  });
}

TEST(Recovery, AcceptsCheckRoundsThatTheCallerCompletes) {
  with_trouble(3, fake_gba::lose_device, [](Job& job, Member& member) {
    job.sync();
    std::uint64_t k = 1;
    for (; member.uses_device(); ++k) {
      member.barrier(k);
    }
    for (; !member.uses_device() && k < 1'000'000; ++k) {
      if (k % GBA_BARRIER_PERIOD == 0) {
        gba_barrier_arrive(member.barrier(), k);
        job.sync();
        gba_barrier_conclude(member.barrier());
      } else {
        job.sync();
      }
    }
    EXPECT_EQ(member.barrier(k), GBA_BARRIER_RELEASED);
    EXPECT_EQ(k % GBA_BARRIER_PERIOD, 1U);
  });
}

}  // namespace
