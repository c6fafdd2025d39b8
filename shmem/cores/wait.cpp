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

#include "shmem/cores/processors.hpp"

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

/// False if the kernel is older than 5.16, or a container blocks the call.
bool sleep_on_both(const void* word, std::uint32_t seen, std::chrono::nanoseconds limit, const Alarm& alarm) {
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

void YieldWatch::pause_from(Clock::time_point now) {
  constexpr int kSoon = 8;  // pauses after the last one: it is the same who computes
  const Clock::duration last(pause_.load(std::memory_order_relaxed));
  const Clock::time_point resumed{Clock::duration(resume_.load(std::memory_order_relaxed))};
  const bool again = last.count() != 0 && now - resumed < kSoon * last;
  const Clock::duration pause = again ? std::min<Clock::duration>(2 * last, kLongestPause) : kShortestPause;
  pause_.store(pause.count(), std::memory_order_relaxed);
  resume_.store((now + pause).time_since_epoch().count(), std::memory_order_relaxed);
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
