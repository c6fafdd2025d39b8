// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/wait.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/pause.hpp"
#include "base/valgrind.hpp"
#include "shmem/cores/processors.hpp"
#include "shmem/cores/sharing.hpp"

namespace shmem {
namespace {

// A round trip between two processors is well below a microsecond; a wait that outlasts these spins has another cause.
constexpr unsigned kSpinsAlone = 4000;
// Enough for every other PE to be scheduled once; each yield is a context switch when PEs outnumber processors.
constexpr unsigned kYields = 16;

bool membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

int own_processors() {
  const auto cpus = own_cpus();
  return cpus ? static_cast<int>(cpus->size()) : 1;
}

timespec timespec_of(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), (time - seconds).count()};
}

// Shared, not FUTEX_PRIVATE: several processes map the words.
futex_waitv waiter(const void* word, std::uint32_t seen) {
  return {.val = seen, .uaddr = reinterpret_cast<std::uintptr_t>(word), .flags = FUTEX_32, .__reserved = 0};
}

/// False if the kernel is older than 5.16, or a container blocks the call. valgrind does not know the call, and would
/// say so each time.
bool sleep_on_both(const void* word, std::uint32_t seen, std::chrono::nanoseconds limit, const Alarm& alarm) {
  if (RUNNING_ON_VALGRIND != 0) {
    return false;
  }
  const std::array<futex_waitv, 2> words{waiter(word, seen), waiter(&alarm, 0)};
  const timespec end = timespec_of(Clock::now().time_since_epoch() + limit);
  return ::syscall(SYS_futex_waitv, words.data(), words.size(), 0, &end, CLOCK_MONOTONIC) >= 0 ||
         (errno != ENOSYS && errno != EPERM);
}

void sleep_on(const void* word, std::uint32_t seen, std::chrono::nanoseconds limit, const Alarm* alarm) {
  if (alarm != nullptr && sleep_on_both(word, seen, limit, *alarm)) {
    return;
  }
  const timespec time = timespec_of(limit);
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wake(const void* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// The kernel compares 32 bits. On a little-endian machine the low half of a 64-bit word, which changes, comes first.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

}  // namespace

WaitPolicy wait_policy(int runnable, int processors) {
  return {runnable <= (processors > 0 ? processors : own_processors()) ? kSpinsAlone : 0U, kYields};
}

bool join_store_barriers() {
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

bool store_barrier_on_all() {
  return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void yield_processor() {
  ::sched_yield();
}

bool Turns::take_slowly() {
  needs_check_ = false;
  if (turn_ < policy_.spins) {
    ++turn_;
    if (policy_.sharing != nullptr && policy_.sharing->looks_early() &&
        policy_.sharing->look(Clock::now()) == SharingWatch::Verdict::kTogether) {
      turn_ = policy_.spins;
      has_spun_on_ = true;
    }
    return true;
  }
  if (policy_.sharing != nullptr && policy_.spins != 0 && spin_on()) {
    return true;
  }
  if (policy_.may_yield(turn_)) {
    ++turn_;
    policy_.yield();
    return true;
  }
  return false;
}

bool Turns::spin_on() {
  using enum SharingWatch::Verdict;
  // Longer than another process computes before the scheduler lets the awaited PE run again.
  constexpr std::chrono::milliseconds kLongest{20};
  constexpr unsigned kLookEach = 512;
  // A processor that other processes use, too, is left to them while the awaited PE does not run, so that both run at
  // the same time afterwards.
  constexpr unsigned kYieldEach = 16 * kLookEach;
  needs_check_ = false;
  if (has_spun_on_) {
    return false;
  }
  const unsigned spins = more_spins_++;
  if (spins % kLookEach != 0) {
    base::pause_processor();
    return true;
  }
  const auto now = Clock::now();
  if (spins == 0) {
    end_ = now + kLongest;
  }
  const auto verdict = policy_.sharing->look(now);
  has_spun_on_ = now >= end_ || verdict == kTogether || verdict == kUnknown;
  if (!has_spun_on_ && spins != 0 && spins % kYieldEach == 0) {
    yield_processor();
  }
  needs_check_ = !has_spun_on_;
  return !has_spun_on_;
}

YieldWatch& YieldWatch::of_this_thread() {
  static constinit thread_local YieldWatch watch __attribute__((tls_model("initial-exec")));
  return watch;
}

void YieldWatch::add(Clock::duration time) {
  account_ = std::clamp<Clock::duration>(account_ + time, Clock::duration::zero(), kFull);
  if (is_empty()) {
    unused_.reset();
    pause_ = {};
    resume_ = {};
  }
}

void YieldWatch::judge(std::optional<Clock::duration> unused, Clock::time_point now) {
  if (unused && !unused_) {
    unused_ = unused;  // the next long yield tells
    return;
  }
  if (account_ < kFull) {
    return;
  }
  if (unused && *unused - *unused_ < kUnused) {
    add(-kFull);
    return;
  }
  unused_.reset();
  pause_ = std::clamp<Clock::duration>(2 * pause_, kShortestPause, kLongestPause);
  resume_ = now + pause_;
}

void WaitPolicy::yield() const {
  YieldWatch& watch = YieldWatch::of_this_thread();
  if (!watch.times_next()) [[likely]] {
    yield_processor();
    return;
  }
  SharingWatch* const pes = spins == 0 ? sharing : nullptr;
  const auto before = Clock::now();
  yield_processor();
  const auto after = Clock::now();
  watch.note(before, after, [&] { return pes != nullptr ? pes->unused(after) : std::nullopt; });
  if (pes == nullptr) {
    return;
  }
  if (watch.is_empty()) {
    pes->invite(after);
  } else if (pes->follow(after, !watch.pays(after))) {
    watch.resume();
  }
}

void futex_sleep(const std::atomic<std::uint64_t>& word, std::uint64_t seen, std::chrono::nanoseconds limit,
                 const Alarm* alarm) {
  sleep_on(&word, static_cast<std::uint32_t>(seen), limit, alarm);
}
void futex_sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit,
                 const Alarm* alarm) {
  sleep_on(&word, seen, limit, alarm);
}
void futex_wake_all(const std::atomic<std::uint64_t>& word) {
  wake(&word);
}
void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  wake(&word);
}

}  // namespace shmem
