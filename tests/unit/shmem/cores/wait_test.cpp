// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/wait.hpp"
#include "base/pause.hpp"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <thread>

#include "shmem/cores/core.hpp"
#include "shmem/cores/processors.hpp"
#include "shmem/layout/parking.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/no_system_calls.hpp"

namespace {

using shmem::SyncWord;
using shmem::WaitPolicy;
using shmem::YieldWatch;
using namespace std::chrono_literals;
using Clock = shmem::Clock;

bool kernel_wakes_for_alarms() {
  return ::syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) < 0 && errno == EINVAL;
}

/// Longer than the time limit of a test.
constexpr std::chrono::hours kForEver{1};

class Alarm : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel_wakes_for_alarms()) {
      GTEST_SKIP() << "futex_waitv is not available: alarms are seen at the end of a nap";
    }
  }
  /// Ends a wait at the thousandth look. A wait that naps between looks would not get there during a test.
  static auto thousand_looks() {
    return [looks = 0]() mutable { return ++looks < 1000 ? std::errc{} : std::errc::operation_canceled; };
  }

  std::atomic<std::uint32_t> alarm_{0};
  WaitPolicy policy_{0, 0, &alarm_};
};

TEST_F(Alarm, WakesASleeper) {
  const std::atomic<std::uint64_t> word{7};
  std::thread sleeper([&] { shmem::futex_sleep(word, 7, kForEver, &alarm_); });
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  alarm_.store(1);
  shmem::futex_wake_all(alarm_);
  sleeper.join();
}

TEST_F(Alarm, DoesNotKeepTheWordFromWaking) {
  std::atomic<std::uint64_t> word{7};
  std::thread sleeper([&] { shmem::futex_sleep(word, 7, kForEver, &alarm_); });
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  word.store(8);
  shmem::futex_wake_all(word);
  sleeper.join();
  shmem::futex_sleep(word, 7, kForEver, &alarm_);  // the word has another value: no sleep
}

TEST_F(Alarm, KeepsWaitsAwake) {
  alarm_ = 1;
  SyncWord word{};
  const auto never = [](std::uint64_t) { return false; };
  EXPECT_EQ(shmem::wait_on(word, policy_, never, thousand_looks()), std::errc::operation_canceled);
  EXPECT_EQ(shmem::wait_polling(
                policy_, shmem::kLongestSleep, [] { return false; }, thousand_looks()),
            std::errc::operation_canceled);
}

TEST(Waiting, SpinsIfEachPeHasAProcessor) {
  EXPECT_GT(shmem::wait_policy(2, 2).spins, 0U);
  EXPECT_EQ(shmem::wait_policy(3, 2).spins, 0U);
  EXPECT_EQ(shmem::wait_policy(3, 2).yields, shmem::wait_policy(2, 2).yields);
}

TEST(Waiting, MakesNoSystemCallIfTheWordHasArrivedAndNoPeSleeps) {
  SyncWord word{};
  test_support::expect_no_system_calls([&word] {
    shmem::publish(word, 5);
    shmem::wake_sleepers(word);
    const auto unasked = [] { return std::errc::io_error; };
    const WaitPolicy policy{10, 10};
    return shmem::wait_on(
               word, policy, [](std::uint64_t seen) { return seen == 5; }, unasked) == std::errc{};
  });
}

TEST(Waiting, MakesNoSystemCallWhileItSpins) {
  test_support::expect_no_system_calls([] {
    int looks = 0;
    return shmem::spin_until(WaitPolicy{100, 0}, [&] { return ++looks == 50; });
  });
}

/// Background work for a number of looks, the last of which ends the wait.
class Busy final : public shmem::Background {
 public:
  explicit Busy(int looks) : looks_(looks) {}
  bool advance() override { return ++seen_ <= looks_; }
  [[nodiscard]] bool over() const { return seen_ >= looks_; }

 private:
  const int looks_;
  int seen_ = 0;
};

/// A PE as wait_parked() sees it.
struct ParkedPe {
  struct Metadata {
    shmem::Parking parking;
  };
  WaitPolicy policy;
  int me = 0;
  mutable Metadata own{};
  [[nodiscard]] Metadata& metadata(int /*pe*/) const { return own; }
};

TEST(Waiting, DoesNotSleepWhileThereIsBackgroundWork) {
  constexpr int kLooks = 1000;
  const auto go_on = [] { return std::errc{}; };
  const auto wait_in = [&](const auto& wait) {
    test_support::expect_no_system_calls([&wait] {
      Busy busy(kLooks);
      const WaitPolicy policy{.background = &busy};
      return wait(busy, policy) == std::errc{};
    });
  };
  wait_in([&](Busy& busy, const WaitPolicy& policy) {
    SyncWord word{};
    return shmem::wait_on(
        word, policy, [&](std::uint64_t) { return busy.over(); }, go_on);
  });
  wait_in([&](Busy& busy, const WaitPolicy& policy) {
    return shmem::wait_polling(
        policy, shmem::kLongestSleep, [&] { return busy.over(); }, go_on);
  });
  wait_in([&](Busy& busy, const WaitPolicy& policy) {
    return shmem::wait_parked(
        ParkedPe{policy}, [&] { return busy.over(); }, go_on);
  });
}

/// Background work at one turn.
class OneRequest final : public shmem::Background {
 public:
  static constexpr int kTurn = 20;
  bool advance() override { return ++turns_ == kTurn; }
  [[nodiscard]] int turns() const { return turns_; }

 private:
  int turns_ = 0;
};

/// Called before each nap. Ends the wait at the first call after the request.
struct FirstNapAfterRequest {
  std::errc operator()() {
    *turn = request->turns();
    return *turn < OneRequest::kTurn ? std::errc{} : std::errc::timed_out;
  }
  static std::chrono::nanoseconds longest_sleep() { return 1us; }

  const OneRequest* request;
  int* turn;
};

TEST(Waiting, SpinsAndYieldsAgainAfterItServedARequest) {
  constexpr int kSpins = 4;
  constexpr int kYields = 3;
  const auto takes_all_turns = [&](const auto& wait) {
    OneRequest request;
    int turn = 0;
    YieldWatch::of_this_thread() = {};
    const WaitPolicy policy{.spins = kSpins, .yields = kYields, .background = &request};
    EXPECT_EQ(wait(policy, FirstNapAfterRequest{&request, &turn}), std::errc::timed_out);
    // Where other processes compute, it does not always yield.
    const int least = YieldWatch::of_this_thread().is_empty() ? kSpins + kYields : kSpins;
    EXPECT_GE(turn - OneRequest::kTurn, least);
  };
  const auto never = [] { return false; };
  takes_all_turns([](const WaitPolicy& policy, const auto& check) {
    SyncWord word{};
    return shmem::wait_on(
        word, policy, [](std::uint64_t) { return false; }, check);
  });
  takes_all_turns(
      [&](const WaitPolicy& policy, const auto& check) { return shmem::wait_polling(policy, 1us, never, check); });
  takes_all_turns(
      [&](const WaitPolicy& policy, const auto& check) { return shmem::wait_parked(ParkedPe{policy}, never, check); });
}

TEST(WaitPolicy, NapsBrieflyOnlyIfNobodyElseDoesTheBackgroundWork) {
  class Unnoticed final : public shmem::Background {
   public:
    bool advance() override { return false; }
    [[nodiscard]] bool writes_unnoticed() const override { return true; }
  };
  const std::chrono::nanoseconds long_nap = shmem::kLongestSleep;
  const std::chrono::nanoseconds brief = shmem::kLongestBackgroundNap;
  EXPECT_EQ(WaitPolicy{}.limit_nap(long_nap), long_nap);
  EXPECT_EQ(WaitPolicy{}.limit_word_nap(long_nap), long_nap);
  Busy messages(0);
  Unnoticed adapter;
  for (shmem::Background* work :
       {static_cast<shmem::Background*>(&messages), static_cast<shmem::Background*>(&adapter)}) {
    const WaitPolicy policy{.background = work};
    EXPECT_EQ(policy.limit_nap(long_nap), brief);
    EXPECT_EQ(policy.limit_word_nap(long_nap), brief);
    work->is_served_by_a_thread();
    EXPECT_EQ(policy.limit_nap(long_nap), long_nap);
  }
  EXPECT_EQ(WaitPolicy{.background = &messages}.limit_word_nap(long_nap), long_nap);
  EXPECT_EQ(WaitPolicy{.background = &adapter}.limit_word_nap(long_nap), brief) << "no thread wakes the waiter";
}

TEST(Waiting, CallsTheCheckAlsoWhileThereIsAlwaysBackgroundWork) {
  Busy busy(std::numeric_limits<int>::max());
  const WaitPolicy policy{.background = &busy};
  const auto never = [] { return false; };
  const auto too_late = [] { return std::errc::timed_out; };
  SyncWord word{};
  EXPECT_EQ(shmem::wait_on(
                word, policy, [](std::uint64_t) { return false; }, too_late),
            std::errc::timed_out);
  EXPECT_EQ(shmem::wait_polling(policy, shmem::kLongestSleep, never, too_late), std::errc::timed_out);
  EXPECT_EQ(shmem::wait_parked(ParkedPe{policy}, never, too_late), std::errc::timed_out);
}

TEST(Waiting, CallsTheCheckAlsoIfEachRequestComesWhileItSpins) {
  /// Work at each third turn.
  class Steady final : public shmem::Background {
   public:
    bool advance() override { return ++turns_ % 3 == 0; }

   private:
    int turns_ = 0;
  } steady;
  const WaitPolicy policy{.spins = 10, .background = &steady};
  SyncWord word{};
  EXPECT_EQ(shmem::wait_on(
                word, policy, [](std::uint64_t) { return false; }, [] { return std::errc::timed_out; }),
            std::errc::timed_out);
}

void wait_for(const std::atomic<int>& word, int round) {
  for (int looks = 1; word.load(std::memory_order_acquire) < round; ++looks) {
    if (looks % 1000 == 0) {
      // Not a yield: on a busy machine that takes longer than a sleep.
      std::this_thread::sleep_for(std::chrono::microseconds(1));
    }
  }
}

/// Simulates a put and a PE that is about to sleep. The put stores a word and then looks for sleepers, with plain
/// stores and loads; the PE announces itself and then looks at the word. At least one must see the other.
TEST(StoreBarriers, KeepAPutAndASleeperFromMissingEachOther) {
  if (!shmem::join_store_barriers() || !shmem::store_barrier_on_all()) {
    GTEST_SKIP() << "the kernel does not support membarrier() for all processes";
  }
  struct alignas(64) Line {
    std::atomic<int> value{0};
  };
  const int rounds = test_support::repeats(5000, 1000000);
  std::array<Line, 32> bytes;  // the data of the put, which delays the word in the store buffer
  Line word;
  Line sleepers;
  Line begun;  // the round that the thread that puts may begin
  Line put;    // the round that it has completed
  std::atomic<int> seen{0};
  std::jthread putting([&] {
    for (int round = 1; round <= rounds; ++round) {
      wait_for(begun.value, round);
      for (Line& byte : bytes) {
        byte.value.store(round, std::memory_order_relaxed);
      }
      word.value.store(round, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      seen.store(sleepers.value.load(std::memory_order_relaxed), std::memory_order_relaxed);
      put.value.store(round, std::memory_order_release);
    }
  });
  int missed = 0;
  for (int round = 1; round <= rounds; ++round) {
    for (Line& byte : bytes) {
      byte.value.store(-round, std::memory_order_relaxed);
    }
    begun.value.store(round, std::memory_order_release);
    for (int delay = 0; delay < round % 200; ++delay) {
      base::pause_processor();
    }
    sleepers.value.store(round, std::memory_order_seq_cst);
    shmem::store_barrier_on_all();
    const int found = word.value.load(std::memory_order_relaxed);
    wait_for(put.value, round);
    missed += found < round && seen.load(std::memory_order_relaxed) < round ? 1 : 0;
  }
  EXPECT_EQ(missed, 0);
}

TEST(WaitingDeathTest, NoticesASystemCall) {
  SyncWord word{};
  word.sleepers = 1;
  EXPECT_FALSE(test_support::makes_no_system_calls([&word] {
    shmem::publish(word, 1);
    return true;
  }));
}

class YieldWatchTest : public testing::Test {
 protected:
  /// Simulates a yield that takes `time`.
  void yield(Clock::duration time) {
    const auto before = now_;
    now_ += time;
    watch_.note(before, now_, [this] { return ++looks_, unused_; });
  }
  /// The same while others than the PEs compute.
  void yield_to_strangers(Clock::duration time) {
    unused_ = *unused_ + time;
    yield(time);
  }
  /// Long yields until they do not pay any more. Returns for how long they do not.
  Clock::duration pause_after_long_yields() {
    while (watch_.pays(now_)) {
      yield(4ms);
    }
    const auto begin = now_;
    while (!watch_.pays(now_)) {
      now_ += 1ms;
    }
    return now_ - begin;
  }
  /// As PEs do that wait only for each other.
  void yield_briefly(int times) {
    for (int i = 0; i < times; ++i) {
      yield(2us);
      ASSERT_TRUE(watch_.pays(now_));
    }
  }
  YieldWatch watch_;
  Clock::time_point now_ = Clock::now();
  std::optional<Clock::duration> unused_;
  int looks_ = 0;  // at the time that PEs have used
};

TEST_F(YieldWatchTest, AllowsYieldsUntilTheyTakeLongOnAverage) {
  EXPECT_TRUE(watch_.pays(now_));
  yield(4ms);  // once is chance
  EXPECT_TRUE(watch_.pays(now_));
  yield(4ms);
  EXPECT_FALSE(watch_.pays(now_));
  EXPECT_FALSE(watch_.pays(now_ + YieldWatch::kShortestPause - 1us));
  EXPECT_TRUE(watch_.pays(now_ + YieldWatch::kShortestPause));
}

TEST_F(YieldWatchTest, CountsNeitherRareLongYieldsNorThoseInWhichPesCopyData) {
  constexpr int kEnough = 4ms / YieldWatch::kSleep + 1;
  for (int i = 0; i < 20; ++i) {
    yield(4ms);
    yield_briefly(kEnough);
  }
  for (int i = 0; i < 1000; ++i) {
    yield(YieldWatch::kLong - 1us);
    ASSERT_TRUE(watch_.pays(now_));
  }
}

TEST_F(YieldWatchTest, NoticesAProcessOfLowPriorityThatTakesMoreThanSleepsCost) {
  const auto long_yields_until_pause = [&](int brief) {
    for (int yields = 0; yields < 100; ++yields) {
      if (!watch_.pays(now_)) {
        return yields;
      }
      for (int i = 0; i < brief; ++i) {
        yield(1us);
      }
      yield(4ms);
    }
    return 100;
  };
  EXPECT_LT(long_yields_until_pause(170), 5) << "as beside one of nice 19: 23 us for each yield";
  watch_ = {};
  EXPECT_EQ(long_yields_until_pause(400), 100) << "10 us for each yield";
}

TEST_F(YieldWatchTest, PausesLongerWhileYieldsStayLongAndBrieflyAfterwards) {
  EXPECT_EQ(pause_after_long_yields(), YieldWatch::kShortestPause);
  const auto begin = now_;
  EXPECT_EQ(pause_after_long_yields(), 2 * YieldWatch::kShortestPause);
  EXPECT_EQ(now_ - begin, 4ms + 2 * YieldWatch::kShortestPause) << "a single yield found that they are still long";
  for (int i = 0; i < 10; ++i) {
    pause_after_long_yields();
  }
  EXPECT_EQ(pause_after_long_yields(), YieldWatch::kLongestPause);
  yield_briefly(YieldWatch::kFull / YieldWatch::kSleep + 1);
  EXPECT_EQ(pause_after_long_yields(), YieldWatch::kShortestPause);
}

TEST_F(YieldWatchTest, KnowsThatPesCompute) {
  unused_ = 7h;
  for (int i = 0; i < 1000; ++i) {
    yield(4ms);
    ASSERT_TRUE(watch_.pays(now_));
  }
  watch_ = {};
  yield_to_strangers(4ms);
  EXPECT_TRUE(watch_.pays(now_)) << "nothing was known of the time before";
  yield_to_strangers(4ms);
  EXPECT_FALSE(watch_.pays(now_));
  now_ += YieldWatch::kShortestPause;
  yield_to_strangers(4ms);
  EXPECT_TRUE(watch_.pays(now_)) << "PEs have slept since the last long yield";
  yield_to_strangers(4ms);
  EXPECT_FALSE(watch_.pays(now_ + 2 * YieldWatch::kShortestPause - 1us));
  EXPECT_TRUE(watch_.pays(now_ + 2 * YieldWatch::kShortestPause));
}

TEST_F(YieldWatchTest, DoesNotAskWhatPesDoWhileYieldsAreBrief) {
  unused_ = 0s;
  yield_briefly(1000);
  EXPECT_EQ(looks_, 0);
  yield(4ms);
  EXPECT_EQ(looks_, 1);
  yield_briefly(1000);
  EXPECT_EQ(looks_, 1);
}

TEST_F(YieldWatchTest, SeldomReadsTheClockUnlessThereIsReason) {
  const auto timed_of = [&](unsigned yields) {
    unsigned timed = 0;
    for (unsigned i = 0; i < yields; ++i) {
      if (watch_.times_next()) {
        ++timed;
        yield(2us);
      }
    }
    return timed;
  };
  EXPECT_EQ(timed_of(YieldWatch::kFirst), YieldWatch::kFirst);
  EXPECT_EQ(timed_of(100 * YieldWatch::kTimedEach), 100U);
  yield(2ms);
  EXPECT_EQ(timed_of(100), 100U) << "after a long yield";
}

std::optional<Clock::duration> unknown_time() {
  return std::nullopt;
}

/// Runs in a thread of its own, whose watch knows nothing yet.
void in_new_thread(const std::function<void()>& work) {
  std::thread(work).join();
}

TEST(YieldsOfAThread, EndWhileTheyTakeLong) {
  in_new_thread([] {
    const WaitPolicy policy{.spins = 2, .yields = 3};
    EXPECT_TRUE(policy.may_yield(4));
    EXPECT_FALSE(policy.may_yield(5));
    YieldWatch::of_this_thread().note(Clock::now(), Clock::now() + kForEver, unknown_time);
    EXPECT_FALSE(policy.may_yield(4));
    int looks = 0;
    EXPECT_FALSE(shmem::spin_until(policy, [&] { return ++looks > 100; }));
    EXPECT_EQ(looks, 3) << "two spins and the final look";
    in_new_thread([&policy] { EXPECT_TRUE(policy.may_yield(4)) << "another thread may run elsewhere"; });
  });
}

/// A process that computes on the first processor of this one, which the calling thread then uses, too.
class BusyProcessor {
 public:
  BusyProcessor() {
    const auto cpus = shmem::own_cpus();
    EXPECT_TRUE(cpus && shmem::run_on({cpus->front()}));
    child_ = ::fork();
    EXPECT_NE(child_, -1);
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile unsigned turn = 0;;) {
        turn = turn + 1;
      }
    }
  }
  BusyProcessor(const BusyProcessor&) = delete;
  BusyProcessor& operator=(const BusyProcessor&) = delete;
  ~BusyProcessor() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

 private:
  pid_t child_ = -1;
};

/// One of two threads that pass a word to each other. Returns how often it has slept, as the kernel counts: a yield is
/// no voluntary switch for it.
long sleeps_of(std::array<SyncWord, 2>& words, std::size_t me, long rounds) {
  const auto policy = shmem::wait_policy(2, 1);
  rusage before{};
  ::getrusage(RUSAGE_THREAD, &before);
  for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(rounds); ++round) {
    if (me == 0) {
      shmem::publish(words[1], round);
    }
    shmem::wait_on(
        words[me], policy, [round](std::uint64_t seen) { return seen >= round; }, [] { return std::errc{}; });
    if (me == 1) {
      shmem::publish(words[0], round);
    }
  }
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

/// If waiters went on to yield, each round would take two time slices of the process that computes.
TEST(YieldsOfAThread, AreSleepsBesideAnotherProcessThatComputes) {
  constexpr long kRounds = 1000;
  in_new_thread([] {
    const BusyProcessor busy;
    std::array<SyncWord, 2> words{};
    long other = 0;
    std::thread partner([&] { other = sleeps_of(words, 1, kRounds); });
    const long mine = sleeps_of(words, 0, kRounds);
    partner.join();
    // Each round has two waits. While one of the two sleeps, yields of the other one are brief.
    EXPECT_GT(mine + other, kRounds / 2);
  });
}

}  // namespace
