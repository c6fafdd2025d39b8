// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/wait.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace shmem {
namespace {

// A round trip between two processors is well below a microsecond; a wait that takes longer than these spins has a
// reason.
constexpr unsigned kSpinsAlone = 4000;
// Enough for every other PE to have had its turn; each yield is a context switch when PEs outnumber processors.
constexpr unsigned kYields = 16;

int own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Shared, not FUTEX_PRIVATE: the words are in memory that several processes map.
void sleep_on(const void* word, std::uint32_t seen, std::chrono::nanoseconds limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{seconds.count(), (limit - seconds).count()};
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wake(const void* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// The kernel compares 32 bits. On a little-endian machine the low half of a 64-bit word, the one that changes, is
// first.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

}  // namespace

WaitPolicy wait_policy(int runnable, int processors) {
  return {runnable <= (processors > 0 ? processors : own_processors()) ? kSpinsAlone : 0U, kYields};
}

void yield_processor() {
  ::sched_yield();
}

void futex_sleep(const std::atomic<std::uint64_t>& word, std::uint64_t seen, std::chrono::nanoseconds limit) {
  sleep_on(&word, static_cast<std::uint32_t>(seen), limit);
}
void futex_sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit) {
  sleep_on(&word, seen, limit);
}
void futex_wake_all(const std::atomic<std::uint64_t>& word) {
  wake(&word);
}
void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  wake(&word);
}

}  // namespace shmem
