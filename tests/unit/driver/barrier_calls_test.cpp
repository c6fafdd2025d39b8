// SPDX-License-Identifier: Apache-2.0
// gba/barrier.h, call by call: the arguments that are refused, and the errors of a barrier that cannot be completed.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>

#include "tests/unit/driver/barrier_job.hpp"
#include "tests/unit/shmem/fake_gba.hpp"

namespace {

using barrier_test::BarrierPtr;
using barrier_test::Job;
using barrier_test::Member;
using barrier_test::PortPtr;
using barrier_test::Shape;

constexpr std::uint64_t kMillisecond = 1'000'000;

/// The words of two members; the test is member 0.
class BarrierCalls : public testing::Test {
 protected:
  BarrierCalls() {
    fake_gba::power_on(2);
    gba_barrier_port* port = nullptr;
    EXPECT_EQ(gba_barrier_port_open(nullptr, &port), 0);
    port_.reset(port);
    config_.size = sizeof config_;
    config_.members = 2;
    config_.word = words_[0].data();
    config_.words = words_[0].data();
    config_.stride = sizeof words_[0];
    config_.port = port;
    config_.context = this;
  }

  int create() {
    gba_barrier* barrier = nullptr;
    const int error = gba_barrier_create(&config_, &barrier);
    EXPECT_EQ(error == 0, barrier != nullptr);
    barrier_.reset(barrier);
    return error;
  }
  int refused(const std::function<void(gba_barrier_config&)>& spoil) {
    const auto sound = config_;
    spoil(config_);
    const int error = create();
    config_ = sound;
    return error;
  }
  int wait(std::uint64_t timeout_ns) {
    const gba_barrier_waiting waiting{};
    return gba_barrier_wait(barrier_.get(), &waiting, timeout_ns);
  }

  std::array<std::array<std::uint64_t, 2>, 2> words_{};
  std::uint64_t alarm_ = 0;
  gba_barrier_config config_{};
  PortPtr port_;
  BarrierPtr barrier_;
};

int read_nothing(void* /*context*/, std::uint32_t /*member*/, std::uint64_t /*k*/, std::uint64_t* word) {
  *word = 0;
  return 0;
}
int raise_nothing(void* /*context*/, std::uint64_t /*k*/) {
  return 0;
}

TEST_F(BarrierCalls, RefuseAnInvalidConfig) {
  EXPECT_EQ(create(), 0);
  EXPECT_EQ(refused([](auto& config) { config.size = 8; }), -EINVAL);
  EXPECT_EQ(refused([](auto& config) { config.members = 0; }), -EINVAL);
  EXPECT_EQ(refused([](auto& config) { config.member = 2; }), -EINVAL);
  EXPECT_EQ(refused([](auto& config) { config.word = nullptr; }), -EINVAL);
  EXPECT_EQ(refused([](auto& config) { config.words = nullptr; }), -EINVAL) << "neither words nor read";
  EXPECT_EQ(refused([](auto& config) {
              config.words = nullptr;
              config.read = read_nothing;
            }),
            -EINVAL)
      << "a network needs an alarm";
  EXPECT_EQ(refused([](auto& config) { config.raise = raise_nothing; }), -EINVAL);
  EXPECT_EQ(refused([](auto& config) { config.port = nullptr; }), -EINVAL) << "sharing needs a port";
  EXPECT_EQ(refused([](auto& config) { config.sharer_count = 1; }), -EINVAL);
  gba_group_handle record{};
  std::uint64_t released = 0;
  EXPECT_EQ(refused([&](auto& config) {
              config.port = nullptr;
              config.released = &released;
              config.offer = &record;
            }),
            -EINVAL)
      << "recovery needs a port";
  EXPECT_EQ(refused([](auto& config) {
              config.group_members = 1;
              config.group_member = 1;
            }),
            -EINVAL);
  EXPECT_EQ(gba_barrier_create(nullptr, nullptr), -EINVAL);
}

TEST_F(BarrierCalls, RefuseNull) {
  ASSERT_EQ(create(), 0);
  gba_barrier_status status{};
  std::uint64_t mask[GBA_GROUP_MASK_WORDS];
  EXPECT_EQ(gba_barrier_port_open(nullptr, nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_port_get_info(nullptr, nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_port_await(nullptr, 0), -EINVAL);
  EXPECT_EQ(gba_barrier_offer(nullptr, 0, nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_join(nullptr, nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_join(barrier_.get(), nullptr), -EINVAL) << "no record was offered";
  EXPECT_EQ(gba_barrier_test(nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_poll(nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_sleep(nullptr, 0), -EINVAL);
  EXPECT_EQ(gba_barrier_wait(barrier_.get(), nullptr, 0), -EINVAL);
  EXPECT_EQ(gba_barrier_missing(barrier_.get(), nullptr), -EINVAL);
  EXPECT_EQ(gba_barrier_missing(nullptr, mask), -EINVAL);
  EXPECT_EQ(gba_barrier_get_status(nullptr, &status), -EINVAL);
  EXPECT_EQ(gba_barrier_uses_device(nullptr), 0);
  gba_barrier_arrive(nullptr, 1);
  gba_barrier_begin(nullptr, 1);
  gba_barrier_destroy(nullptr);
  gba_barrier_port_close(nullptr);
  gba_barrier_port_mark_suspect(nullptr);
}

TEST_F(BarrierCalls, PublishTheirWordBeforeTheyRing) {
  ASSERT_EQ(create(), 0);
  ASSERT_EQ(gba_barrier_offer(barrier_.get(), 4, nullptr), 0);
  gba_barrier_arrive(barrier_.get(), 4);
  EXPECT_EQ(words_[0][0], 4U << 2 | 1) << "OFF: the device is not used yet";
}

TEST_F(BarrierCalls, NameTheMissingMemberAfterATimeout) {
  ASSERT_EQ(create(), 0);
  gba_barrier_arrive(barrier_.get(), 1);
  EXPECT_EQ(gba_barrier_test(barrier_.get()), -EAGAIN);
  EXPECT_EQ(wait(2 * kMillisecond), -ETIMEDOUT);
  std::uint64_t mask[GBA_GROUP_MASK_WORDS];
  ASSERT_EQ(gba_barrier_missing(barrier_.get(), mask), 0);
  EXPECT_EQ(mask[0], 2U);
  __atomic_store_n(&words_[1][1], 1U << 2 | 1, __ATOMIC_RELEASE);
  EXPECT_EQ(wait(kMillisecond), GBA_BARRIER_COMPLETED) << "the wait can be continued";
  EXPECT_EQ(gba_barrier_test(barrier_.get()), 0) << "no barrier is open";
}

TEST_F(BarrierCalls, CallTheCheckBeforeTheySleep) {
  ASSERT_EQ(create(), 0);
  gba_barrier_arrive(barrier_.get(), 1);
  int calls = 0;
  gba_barrier_waiting waiting{};
  waiting.spins = waiting.yields = 3;
  waiting.context = &calls;
  waiting.check = [](void* context, std::uint64_t* longest_ns) {
    EXPECT_EQ(*longest_ns, 100 * kMillisecond);
    *longest_ns = 1000;
    return ++*static_cast<int*>(context) == 3 ? -ECANCELED : 0;
  };
  EXPECT_EQ(gba_barrier_wait(barrier_.get(), &waiting, GBA_WAIT_FOREVER), -ECANCELED);
  EXPECT_EQ(calls, 3);
}

TEST(BarrierFailure, NamesTheMemberWhoseWordCannotBeRead) {
  fake_gba::power_on(2);
  Job job(Shape::kNetwork, 3, false);
  job.run([&](Member& member) {
    ASSERT_TRUE(member.agree(0));
    EXPECT_EQ(member.barrier(1), GBA_BARRIER_RELEASED);
    job.sync();
    if (member.me() == 1) {
      fake_gba::lose_device();
      job.lose_member(1);
    }
    job.sync();
    if (member.me() == 1) {
      return;
    }
    gba_barrier_arrive(member.barrier(), 2);
    const gba_barrier_waiting waiting{};
    EXPECT_EQ(gba_barrier_wait(member.barrier(), &waiting, GBA_WAIT_FOREVER), -EHOSTUNREACH);
    std::uint64_t mask[GBA_GROUP_MASK_WORDS];
    ASSERT_EQ(gba_barrier_missing(member.barrier(), mask), 0);
    EXPECT_EQ(mask[0], 2U);
  });
}

TEST(BarrierPort, IsOpenedAgainWhenItsDeviceIsBack) {
  fake_gba::power_on(2);
  gba_barrier_port* opened = nullptr;
  ASSERT_EQ(gba_barrier_port_open("anything", &opened), 0);
  const PortPtr port(opened);
  gba_device_info info{};
  EXPECT_EQ(gba_barrier_port_get_info(opened, &info), 0);
  fake_gba::lose_device();
  gba_barrier_port_reopen(opened);
  EXPECT_EQ(gba_barrier_port_get_info(opened, &info), 0) << "no call has found it lost yet";
  gba_barrier_port_mark_suspect(opened);
  EXPECT_EQ(gba_barrier_port_get_info(opened, &info), -ENODEV);
  gba_barrier_port_reopen(opened);
  EXPECT_EQ(gba_barrier_port_await(opened, 100 * kMillisecond), -ENODEV);
  fake_gba::return_at_open(0);
  EXPECT_EQ(gba_barrier_port_await(opened, 20'000 * kMillisecond), 0) << "without another reopen";
  EXPECT_EQ(gba_barrier_port_get_info(opened, &info), 0);
}

}  // namespace
