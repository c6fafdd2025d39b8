// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/core_group.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <set>
#include <stdexcept>

#include "shmem/cores/core.hpp"

namespace {

using shmem::CoreGroup;
using shmem::ThreadCore;
using testing::HasSubstr;

std::unique_ptr<CoreGroup> make_group(int cores) {
  auto group = CoreGroup::create(cores, shmem::wait_policy(cores));
  return group ? *std::move(group) : nullptr;
}

/// A check that ends waits when the time is over.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds time) : end_(shmem::Clock::now() + time) {}
  std::errc operator()() const { return shmem::Clock::now() < end_ ? std::errc{} : std::errc::timed_out; }

 private:
  shmem::Clock::time_point end_;
};

class CoreGroupTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Cores, CoreGroupTest, testing::Values(1, 2, 3, 8));

TEST_P(CoreGroupTest, RunsTheKernelOnceOnEachCoreWithCore0OnTheCaller) {
  auto group = make_group(GetParam());
  std::vector<std::thread::id> ran_on(static_cast<std::size_t>(GetParam()));
  EXPECT_EQ(group->run([&](ThreadCore& core) {
    EXPECT_EQ(core.count(), GetParam());
    ran_on.at(static_cast<std::size_t>(core.index())) = std::this_thread::get_id();
    return std::errc{};
  }),
            std::errc{});
  EXPECT_EQ(ran_on[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ran_on.begin(), ran_on.end()).size(), ran_on.size());
}

TEST_P(CoreGroupTest, CoresSeeWhatTheOthersStoredBeforeASync) {
  constexpr int kMeetings = 200;
  auto group = make_group(GetParam());
  std::vector<int> steps(static_cast<std::size_t>(GetParam()), 0);
  const auto kernel = [&](ThreadCore& core) {
    for (int step = 1; step <= kMeetings; ++step) {
      steps[static_cast<std::size_t>(core.index())] = step;
      if (const std::errc error = core.sync(); error != std::errc{}) {
        return error;
      }
      for (const int other : steps) {
        EXPECT_EQ(other, step);
      }
      if (const std::errc error = core.sync(); error != std::errc{}) {
        return error;
      }
    }
    return std::errc{};
  };
  EXPECT_EQ(group->run(kernel), std::errc{});
}

TEST_P(CoreGroupTest, CoresSynchronizeByMemoryAlone) {
  constexpr std::size_t kRounds = 3;
  constexpr int kMeetings = 200;
  auto group = make_group(GetParam());
  std::vector<shmem::SyncWord> pool(static_cast<std::size_t>(GetParam()) * kRounds);
  shmem::SyncWord counter{};
  std::vector<int> steps(static_cast<std::size_t>(GetParam()), 0);
  const auto synchronize = [&](ThreadCore& core) {
    return shmem::disseminate_cores(core, pool.data(), kRounds, counter);
  };
  EXPECT_EQ(group->run([&](ThreadCore& core) {
    std::errc error{};
    for (int step = 1; step <= kMeetings && error == std::errc{}; ++step) {
      steps[static_cast<std::size_t>(core.index())] = step;
      error = synchronize(core);
      for (const int other : steps) {
        EXPECT_EQ(other, step);
      }
      error = error != std::errc{} ? error : synchronize(core);
    }
    return error;
  }),
            std::errc{});
  EXPECT_EQ(counter.value.load(), 2U * kMeetings);
}

TEST_P(CoreGroupTest, RunsManyKernelsOneAfterTheOther) {
  auto group = make_group(GetParam());
  int sum = 0;  // not atomic: one core of each kernel changes it, and run() orders the kernels
  std::atomic<int> together{0};
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(group->run([&](ThreadCore& core) {
      together.fetch_add(1, std::memory_order_relaxed);
      if (core.index() == core.count() - 1) {
        ++sum;
      }
      return std::errc{};
    }),
              std::errc{});
  }
  EXPECT_EQ(sum, 500);
  EXPECT_EQ(together.load(), 500 * GetParam());
}

TEST(CoreGroup, AFailingCoreEndsTheSyncOfTheOthers) {
  auto group = make_group(4);
  std::atomic<int> canceled{0};
  const std::errc error = group->run([&](ThreadCore& core) {
    if (core.index() == 2) {
      return std::errc::io_error;
    }
    const std::errc met = core.sync();
    canceled += met == std::errc::operation_canceled ? 1 : 0;
    return met;
  });
  EXPECT_EQ(error, std::errc::io_error);
  EXPECT_EQ(canceled.load(), 3);
}

TEST(CoreGroup, AFailingCoreEndsTheWaitsOfTheOthers) {
  auto group = make_group(3);
  shmem::SyncWord never{};
  EXPECT_EQ(group->run([&](ThreadCore& core) {
    return core.index() == 1 ? std::errc::io_error : shmem::signal_wait_at_least(core, never, 1);
  }),
            std::errc::io_error);
}

TEST(CoreGroup, WorksAgainAfterAKernelFailed) {
  auto group = make_group(3);
  EXPECT_EQ(group->run([](ThreadCore& core) { return core.index() == 0 ? std::errc::io_error : core.sync(); }),
            std::errc::io_error);
  EXPECT_EQ(group->run([](ThreadCore& core) { return core.sync(); }), std::errc{});
}

TEST(CoreGroup, TheCheckEndsASyncThatACoreDoesNotJoin) {
  auto group = make_group(2);
  EXPECT_EQ(group->run([](ThreadCore& core) { return core.index() == 0 ? std::errc{} : core.sync(); },
                       Deadline{std::chrono::milliseconds{10}}),
            std::errc::timed_out);
}

TEST(CoreGroup, TheCheckEndsAWaitForAWord) {
  auto group = make_group(2);
  shmem::SyncWord never{};
  EXPECT_EQ(group->run([&](ThreadCore& core) { return shmem::signal_wait_at_least(core, never, 1); },
                       [] { return std::errc::owner_dead; }),
            std::errc::owner_dead);
}

TEST(CoreGroup, AWaitSeesStoresBeforeTheWord) {
  auto group = make_group(2);
  shmem::SyncWord word{};
  int data = 0;
  EXPECT_EQ(group->run([&](ThreadCore& core) {
    if (core.index() == 0) {
      data = 7;
      core.store(word, 3);
      return std::errc{};
    }
    const std::errc error = shmem::signal_wait_at_least(core, word, 2);
    EXPECT_EQ(data, 7);
    return error;
  }),
            std::errc{});
}

TEST(CoreGroup, RethrowsTheExceptionOfAKernelWithoutLosingACore) {
  auto group = make_group(3);
  const auto throwing = [](ThreadCore& core) {
    if (core.index() == 1) {
      throw std::runtime_error("from core 1");
    }
    return core.sync();
  };
  EXPECT_THROW(group->run(throwing), std::runtime_error);
  EXPECT_EQ(group->run([](ThreadCore& core) { return core.sync(); }), std::errc{});
}

TEST(CoreGroup, ItsThreadsBlockSignals) {
  auto group = make_group(2);
  EXPECT_EQ(group->run([](ThreadCore& core) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), core.index());  // core 0 is this thread, which blocks no signals
    return std::errc{};
  }),
            std::errc{});
}

TEST(CoreGroup, RefusesZeroCores) {
  const auto group = CoreGroup::create(0, shmem::wait_policy(1));
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, std::errc::invalid_argument);
  EXPECT_THAT(group.error().text, HasSubstr("0 cores"));
}

}  // namespace
