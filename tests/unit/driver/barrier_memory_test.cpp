// SPDX-License-Identifier: Apache-2.0
// gba/barrier.h while no memory is to be had: nothing is thrown, no barrier is lost, and later all works again.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <new>

#include "tests/support/failing_new.hpp"
#include "tests/unit/driver/barrier_job.hpp"
#include "tests/unit/shmem/fake_gba.hpp"

namespace {

constinit std::atomic<bool> no_memory{false};
constinit std::atomic<int> refusals{0};

}  // namespace

bool test_support::must_fail() {
  const bool fails = no_memory.load(std::memory_order_relaxed);
  refusals.fetch_add(fails ? 1 : 0, std::memory_order_relaxed);
  return fails;
}

namespace {

using barrier_test::BarrierPtr;
using barrier_test::Job;
using barrier_test::Member;
using barrier_test::PortPtr;
using barrier_test::Shape;

/// There is none for as long as the object lives.
class NoMemory {
 public:
  NoMemory() { no_memory = true; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { no_memory = false; }
};

TEST(BarriersWithoutMemory, ReportIt) {
  fake_gba::power_on(2);
  gba_barrier_port* port = nullptr;
  const auto open = [&] { return gba_barrier_port_open("a path that has more bytes than a short string", &port); };
  const auto without = [](const auto& call) {
    const NoMemory none;
    return call();
  };
  EXPECT_EQ(without(open), -ENOMEM);
  EXPECT_EQ(port, nullptr);
  ASSERT_EQ(open(), 0);
  const PortPtr owner(port);

  std::array<std::uint64_t, 4> words{};
  gba_barrier_config config{};
  config.size = sizeof config;
  config.members = 2;
  config.word = words.data();
  config.words = words.data();
  config.stride = 2 * sizeof words[0];
  config.port = port;
  gba_barrier* barrier = nullptr;
  const auto create = [&] { return gba_barrier_create(&config, &barrier); };
  EXPECT_EQ(without(create), -ENOMEM);
  EXPECT_EQ(barrier, nullptr);
  ASSERT_EQ(create(), 0);
  const BarrierPtr barrier_owner(barrier);

  gba_group_handle handle{};
  const auto offer = [&] { return gba_barrier_offer(barrier, 0, &handle); };
  const auto join = [&] { return gba_barrier_join(barrier, &handle); };
  EXPECT_EQ(without(offer), -ENOMEM);
  ASSERT_EQ(offer(), 0);
  EXPECT_EQ(without(join), -ENOMEM);
  ASSERT_EQ(join(), 0);
}

TEST(BarriersWithoutMemory, LookForALostDeviceLater) {
  fake_gba::power_on(2);
  gba_barrier_port* port = nullptr;
  ASSERT_EQ(gba_barrier_port_open(nullptr, &port), 0);
  const PortPtr owner(port);
  gba_barrier_port_mark_suspect(port);
  {
    const NoMemory none;
    EXPECT_NO_THROW(gba_barrier_port_reopen(port));
    EXPECT_EQ(gba_barrier_port_await(port, 0), -ENODEV);
  }
  gba_barrier_port_reopen(port);
  EXPECT_EQ(gba_barrier_port_await(port, 20'000'000'000), 0);
}

/// All members run barriers from `k` on until `done` is true for member 0, for up to 100 s.
template <typename Done>
void run_until(Job& job, Member& member, std::uint64_t& k, std::atomic<bool>& over, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{100};
  for (bool more = true; more; ++k) {
    EXPECT_NO_THROW(member.barrier(k));
    job.sync();
    if (member.me() == 0) {
      over = done() || std::chrono::steady_clock::now() > end;
    }
    job.sync();
    more = !over;
  }
}

void set_memory(Job& job, const Member& member, bool none) {
  job.sync();
  if (member.me() == 0) {
    no_memory = none;
  }
  job.sync();
}

class BarriersOfAShape : public testing::TestWithParam<Shape> {};

TEST_P(BarriersOfAShape, AreCompletedWithoutMemoryWhenTheDeviceIsLost) {
  fake_gba::power_on(4);
  Job job(GetParam(), 4, false);
  job.run([&](Member& member) {
    ASSERT_TRUE(member.agree(0));
    EXPECT_EQ(member.barrier(1), GBA_BARRIER_RELEASED);
    set_memory(job, member, true);
    if (member.me() == 0) {
      fake_gba::lose_device();
    }
    for (std::uint64_t k = 2; k < 100; ++k) {
      EXPECT_NO_THROW(member.barrier(k));
    }
    set_memory(job, member, false);
    EXPECT_FALSE(member.uses_device());
    member.give_back();
  });
  EXPECT_EQ(job.early(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, BarriersOfAShape, testing::Values(Shape::kMemory, Shape::kNetwork, Shape::kShared));

TEST(BarriersWithoutMemory, UseTheDeviceAgainOnceThereIsMemory) {
  fake_gba::power_on(4);
  Job job(Shape::kMemory, 3, true);
  std::atomic<bool> over{false};
  job.run([&](Member& member) {
    std::uint64_t k = 1;
    const auto in_use = [&] { return member.uses_device(); };
    const auto not_in_use = [&] { return !member.uses_device(); };
    ASSERT_TRUE(member.agree(0));
    // Looking for a lost device needs a thread.
    set_memory(job, member, true);
    if (member.me() == 0) {
      fake_gba::lose_device();
      fake_gba::return_at_open(0);
    }
    run_until(job, member, k, over, not_in_use);
    EXPECT_FALSE(member.uses_device());
    set_memory(job, member, false);
    run_until(job, member, k, over, in_use);
    EXPECT_TRUE(member.uses_device());
    if (member.me() == 0) {
      gba_barrier_turn_off(member.barrier(), -EIO, "the test says so");
    }
    run_until(job, member, k, over, not_in_use);
    EXPECT_FALSE(member.uses_device());
    // The votes for a new group need memory. As soon as it is away, member 0 may be refused some.
    const int before = refusals;
    set_memory(job, member, true);
    run_until(job, member, k, over, [&] { return refusals != before; });
    EXPECT_NE(refusals, before);
    EXPECT_FALSE(member.uses_device());
    set_memory(job, member, false);
    run_until(job, member, k, over, in_use);
    EXPECT_TRUE(member.uses_device());
    member.give_back();
  });
  EXPECT_EQ(job.early(), 0);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

}  // namespace
