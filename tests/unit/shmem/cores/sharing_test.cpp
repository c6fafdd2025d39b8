// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/sharing.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shmem/cores/wait.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"

namespace {

using shmem::Company;
using shmem::Cpus;
using shmem::MoveLimit;
using shmem::RunsOn;
using shmem::SharingWatch;
using shmem::Sighting;
using shmem::SyncWord;
using shmem::WaitPolicy;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr shmem::SightingTick kNow = 1'000'000;

TEST(Sighting, IsUnknownWhileItsWordIsZero) {
  EXPECT_FALSE(Sighting::of(0).is_recent(0));
  EXPECT_EQ(Sighting::of(Sighting{.cpu = -1, .tick = kNow}.word()).cpu, -1);
}

TEST(Sighting, SurvivesItsWord) {
  for (const int cpu : {0, 1, 707, 65535}) {
    const Sighting seen = Sighting::of(Sighting{.cpu = cpu, .tick = kNow}.word());
    EXPECT_EQ(seen.cpu, cpu);
    EXPECT_EQ(seen.tick, kNow);
  }
}

TEST(Sighting, IsOldAfterAWhile) {
  const Sighting seen{.cpu = 3, .tick = kNow};
  EXPECT_TRUE(seen.is_recent(kNow + Sighting::kRecent));
  EXPECT_FALSE(seen.is_recent(kNow + Sighting::kRecent + 1));
}

Company company_of(int cpu, std::initializer_list<Sighting> others) {
  Company company;
  for (const Sighting& other : others) {
    company.add(other, cpu, kNow);
  }
  return company;
}

TEST(CompanyOfAWaiter, CountsOnlyThoseSeenRecently) {
  const Sighting old{.cpu = 1, .tick = kNow - 1000};
  EXPECT_FALSE(company_of(1, {}).known);
  EXPECT_FALSE(company_of(1, {old, Sighting{}}).known);
  EXPECT_FALSE(company_of(1, {old}).together);
  const Company apart = company_of(1, {old, {.cpu = 2, .tick = kNow}});
  EXPECT_TRUE(apart.known);
  EXPECT_FALSE(apart.together);
  EXPECT_TRUE(company_of(2, {old, {.cpu = 2, .tick = kNow}}).together);
}

/// What `keep` leaves of the processors.
template <typename Keep>
Cpus kept(Keep keep, Cpus cpus, int cpu, std::span<const Sighting> others) {
  keep(cpus, cpu, others, kNow);
  return cpus;
}

TEST(FreeOfPes, LeavesOutTheOwnProcessorAndThoseOfOthers) {
  const std::array<Sighting, 3> others{{{.cpu = 4, .tick = kNow}, {.cpu = 6, .tick = kNow - 1000}, {}}};
  EXPECT_EQ(kept(shmem::keep_free_of_pes, {2, 4, 6, 8}, 2, others), (Cpus{6, 8}));
  EXPECT_EQ(kept(shmem::keep_free_of_pes, {2, 4}, 2, others), Cpus{});
  EXPECT_EQ(kept(shmem::keep_free_of_pes, {2}, 2, others), Cpus{});
}

TEST(UsedByPes, LeavesOutTheOwnProcessorAndThoseWithoutOthers) {
  const std::array<Sighting, 4> others{
      {{.cpu = 4, .tick = kNow}, {.cpu = 6, .tick = kNow - 1000}, {}, {.cpu = 9, .tick = kNow}}};
  EXPECT_EQ(kept(shmem::keep_used_by_pes, {2, 4, 6, 8}, 2, others), Cpus{4}) << "9 is not allowed";
  EXPECT_EQ(kept(shmem::keep_used_by_pes, {2, 4}, 4, others), Cpus{});
}

TEST(MoveLimitTest, AllowsOneMoveAtATime) {
  MoveLimit limit;
  const auto now = Clock::now();
  EXPECT_TRUE(limit.take(now));
  EXPECT_FALSE(limit.take(now));
  EXPECT_FALSE(limit.take(now + MoveLimit::kShortest - 1us));
  EXPECT_TRUE(limit.take(now + 2 * MoveLimit::kShortest));
}

TEST(MoveLimitTest, WaitsForLongerWhileMovesDoNotHelp) {
  MoveLimit limit;
  auto now = Clock::now();
  const auto pause = [&] {
    EXPECT_TRUE(limit.take(now));
    const auto begin = now;
    while (!limit.take(now)) {
      now += 1ms;
    }
    return now - begin;
  };
  const auto first = pause();
  for (int i = 0; i < 10; ++i) {
    now += 1s;
    EXPECT_EQ(pause(), first) << "a move that has helped for a second";
  }
  now += 1s;
  EXPECT_TRUE(limit.take(now));
  Clock::duration longest{};
  for (int i = 0; i < 12; ++i) {
    const auto begin = now;
    while (!limit.take(now)) {
      now += 1ms;
    }
    longest = std::max<Clock::duration>(longest, now - begin);
  }
  EXPECT_EQ(longest, MoveLimit::kLongest);
}

/// The words of two PEs, of which a test plays the second.
class Watch : public testing::Test {
 protected:
  static Cpus allowed() { return shmem::own_cpus().value(); }
  void other_is_on(int cpu) { words_[1].sighting = Sighting{.cpu = cpu, .tick = shmem::tick_of(Clock::now())}.word(); }
  [[nodiscard]] int said() const { return Sighting::of(words_[0].sighting).cpu; }

  std::array<RunsOn, 2> words_{};
  SharingWatch watch_{{&words_[0], &words_[1]}, 0, 2};
};

/// Whether `done` becomes true in time. What a test says of the other PE is old when the test's processor was busy for
/// a while, so it says it in each call.
bool soon(const std::function<bool()>& done) {
  const auto end = Clock::now() + 30s;
  while (!done()) {
    if (Clock::now() >= end) {
      return false;
    }
  }
  return true;
}

/// Runs on one processor while the object exists.
class OnOne {
 public:
  explicit OnOne(const Cpus& all) : all_(all) { shmem::run_on({all.front()}); }
  OnOne(const OnOne&) = delete;
  OnOne& operator=(const OnOne&) = delete;
  ~OnOne() { shmem::run_on(all_); }

 private:
  Cpus all_;
};

TEST_F(Watch, SaysWhereThePeRuns) {
  const OnOne bound(allowed());
  EXPECT_EQ(watch_.look(Clock::now()), SharingWatch::Verdict::kUnknown);
  EXPECT_EQ(said(), ::sched_getcpu());
}

TEST_F(Watch, StaysWhereItMayNotLeave) {
  const OnOne bound(allowed());
  const Cpus mask = allowed();
  EXPECT_TRUE(soon([&] {
    other_is_on(mask.front());
    return watch_.look(Clock::now()) == SharingWatch::Verdict::kTogether;
  }));
  EXPECT_EQ(allowed(), mask);
  EXPECT_EQ(watch_.moves(), 0U);
}

TEST_F(Watch, LeavesAProcessorOfAnotherPeAndKeepsItsMask) {
  const Cpus mask = allowed();
  if (mask.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  // The kernel may move this thread between the two lines, and moves are limited.
  SharingWatch::Verdict verdict{};
  for (const auto end = Clock::now() + 30s; verdict != SharingWatch::Verdict::kMoved && Clock::now() < end;) {
    other_is_on(::sched_getcpu());
    verdict = watch_.look(Clock::now());
  }
  EXPECT_EQ(verdict, SharingWatch::Verdict::kMoved);
  EXPECT_NE(said(), Sighting::of(words_[1].sighting).cpu);
  EXPECT_EQ(allowed(), mask);
  EXPECT_EQ(watch_.moves(), 1U);
}

/// The turns of a wait that nothing ends, until it would sleep.
unsigned turns_of(const WaitPolicy& policy) {
  shmem::Turns turns(policy);
  unsigned count = 0;
  while (turns.take()) {
    ++count;
  }
  return count;
}

TEST_F(Watch, EndsSpinsAtOnceOnAProcessorOfAnotherPe) {
  const OnOne bound(allowed());
  const WaitPolicy policy{.spins = 1'000'000, .yields = 2, .sharing = &watch_};
  EXPECT_TRUE(soon([&] {
    other_is_on(allowed().front());
    return turns_of(policy) < 1000;
  }));
}

TEST_F(Watch, SpinsAsEverIfItKnowsNothingOfTheOthers) {
  const WaitPolicy policy{.spins = 1000, .yields = 2, .sharing = &watch_};
  const unsigned turns = turns_of(policy);
  EXPECT_GE(turns, 1000U);  // on a busy processor yields may not pay
  EXPECT_LE(turns, 1002U);
}

TEST_F(Watch, SpinsOnWhileTheOtherIsElsewhere) {
  const OnOne bound(allowed());
  const WaitPolicy policy{.spins = 1000, .yields = 2, .sharing = &watch_};
  EXPECT_TRUE(soon([&] {
    other_is_on(allowed().front() + 1);
    return turns_of(policy) > 1100;
  }));
}

TEST_F(Watch, ASpinForLongCallsTheCheck) {
  const OnOne bound(allowed());
  const WaitPolicy policy{.spins = 1000, .sharing = &watch_};
  SyncWord word{};
  int turns = 0;
  other_is_on(allowed().front() + 1);
  const auto end = shmem::wait_on(
      word, policy, [&](std::uint64_t) { return ++turns, false; }, [] { return std::errc::timed_out; });
  EXPECT_EQ(end, std::errc::timed_out);
  EXPECT_LT(turns, 1000 + 1000);
}

/// Runs in a thread of its own, of whose yields nothing is known yet.
void in_other_thread(const std::function<void()>& work) {
  std::thread(work).join();
}

TEST_F(Watch, InvitesWhereYieldsAreBrief) {
  in_other_thread([&] {
    const OnOne bound(allowed());
    watch_.invite(Clock::now());
    EXPECT_EQ(said(), ::sched_getcpu());
    EXPECT_FALSE(watch_.follow(Clock::now(), false));
    EXPECT_EQ(said(), -1) << "yields are not brief any more";
    const WaitPolicy policy{.yields = 1, .sharing = &watch_};
    // The test's processor may be busy: until a yield has been brief.
    for (const auto end = Clock::now() + 30s; said() == -1 && Clock::now() < end;) {
      shmem::YieldWatch::of_this_thread() = {};
      turns_of(policy);
    }
    EXPECT_EQ(said(), ::sched_getcpu());
  });
}

TEST_F(Watch, CountsTheTimeThatPesDoNotUse) {
  const auto begin = Clock::now();
  EXPECT_EQ(watch_.unused(begin), std::nullopt) << "PE 1 has not said who it is";
  words_[1].pid = 1 << 22;  // more than Linux has
  EXPECT_EQ(watch_.unused(begin), std::nullopt) << "there is no such process";
  words_[1].pid = ::getpid();
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  };
  const auto before = *watch_.unused(begin);
  const auto used_before = used();
  while (used() < used_before + 5ms) {
  }
  const auto used_after = used();
  const auto now = Clock::now();
  const auto difference = *watch_.unused(now) - before;
  EXPECT_LE(difference, 2 * (now - begin) - 2 * (used_after - used_before)) << "two PEs, two processors";
  EXPECT_GE(difference, 2 * (now - begin) - 2 * (used() - used_before + 1ms));
}

TEST_F(Watch, FollowsThoseWhoseYieldsAreBrief) {
  const Cpus mask = allowed();
  if (mask.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  EXPECT_FALSE(watch_.follow(Clock::now(), true)) << "there is no other PE";
  // The kernel may move this thread meanwhile.
  bool moved = false;
  for (const auto end = Clock::now() + 30s; !moved && Clock::now() < end;) {
    other_is_on(::sched_getcpu() == mask.front() ? mask.back() : mask.front());
    EXPECT_FALSE(watch_.follow(Clock::now(), false));
    moved = watch_.follow(Clock::now(), true);
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(watch_.moves(), 1U);
  EXPECT_EQ(allowed(), mask);
}

TEST_F(Watch, YieldsAgainAtTheProcessorOfAnother) {
  const Cpus mask = allowed();
  if (mask.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  in_other_thread([&] {
    const WaitPolicy policy{.yields = 1, .sharing = &watch_};
    for (const auto end = Clock::now() + 30s; watch_.moves() == 0 && Clock::now() < end;) {
      const auto now = Clock::now();
      shmem::YieldWatch::of_this_thread().note(now, now + 2 * shmem::YieldWatch::kFull,
                                               [] { return std::optional<Clock::duration>(); });
      EXPECT_FALSE(policy.may_yield(0));
      other_is_on(::sched_getcpu() == mask.front() ? mask.back() : mask.front());
      policy.yield();
    }
    EXPECT_EQ(watch_.moves(), 1U);
    EXPECT_TRUE(policy.may_yield(0));
  });
}

/// From now on the kernel refuses to change the processors of this process. False if it has no such filters.
bool forbid_moves() {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Looks until a move has been refused: the kernel may move this thread just before a look.
std::string look_without_moves() {
  if (!forbid_moves() || shmem::run_on(shmem::own_cpus().value())) {
    return "";  // this kernel, or an emulator, has no filters
  }
  std::array<RunsOn, 2> words{};
  SharingWatch watch({&words[0], &words[1]}, 0, 2);
  for (const auto end = Clock::now() + 30s; !watch.refused() && Clock::now() < end;) {
    const auto now = Clock::now();
    words[1].sighting = Sighting{.cpu = ::sched_getcpu(), .tick = shmem::tick_of(now)}.word();
    if (watch.look(now) == SharingWatch::Verdict::kMoved) {
      return "has moved";
    }
  }
  return watch.refused() && watch.moves() == 0 ? "" : "was not refused";
}

TEST(Processes, ThatMayNotMoveSayThatTheyWereRefused) {
  if (shmem::own_cpus().value().size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  EXPECT_EQ(shmem::testing::in_processes(1, [](int) { return look_without_moves(); }), std::vector<std::string>{""});
}

/// What two processes share that wait for each other in turn.
struct Pair {
  std::array<RunsOn, 2> runs_on;
  std::array<SyncWord, 2> round;
  std::atomic<int> apart;
};

/// Starts on the same processor as the other one, and waits for it until both have seen each other elsewhere.
std::string part_from_other(Pair& pair, std::size_t me, const Cpus& all) {
  shmem::run_on({all.front()});
  SharingWatch watch({&pair.runs_on[0], &pair.runs_on[1]}, static_cast<int>(me), 2);
  const WaitPolicy policy{.spins = 4000, .yields = 16, .sharing = &watch};
  const auto end = Clock::now() + 40s;
  const auto in_time = [end] { return Clock::now() < end ? std::errc{} : std::errc::timed_out; };
  std::uint64_t round = 0;
  for (bool counted = false; pair.apart.load() < 2; ++round) {
    if (round == 100) {
      shmem::run_on(all);
    }
    const auto now = Clock::now();
    watch.look(now);
    const Sighting other = Sighting::of(pair.runs_on[1 - me].sighting);
    if (!counted && round > 100 && other.is_recent(shmem::tick_of(now)) &&
        other.cpu != Sighting::of(pair.runs_on[me].sighting).cpu) {
      counted = true;
      ++pair.apart;
    }
    shmem::publish(pair.round[me], round + 1);
    const auto arrived = [&](std::uint64_t theirs) { return theirs > round || pair.apart.load() == 2; };
    if (shmem::wait_on(pair.round[1 - me], policy, arrived, in_time) != std::errc{}) {
      return "is together with the other one after " + std::to_string(round) + " rounds";
    }
  }
  shmem::publish(pair.round[me], round + 1);
  return shmem::own_cpus().value() == all ? "" : "has other processors than before";
}

TEST(Processes, ThatWaitForEachOtherPart) {
  const Cpus all = shmem::own_cpus().value();
  if (all.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  void* memory = ::mmap(nullptr, sizeof(Pair), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& pair = *new (memory) Pair{};
  const auto results =
      shmem::testing::in_processes(2, [&](int pe) { return part_from_other(pair, static_cast<std::size_t>(pe), all); });
  EXPECT_EQ(results, (std::vector<std::string>{"", ""}));
  ::munmap(memory, sizeof(Pair));
}

}  // namespace
