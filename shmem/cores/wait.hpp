// SPDX-License-Identifier: Apache-2.0
// Waiting: spin, then yield, then sleep. PEs often outnumber processors, and then a spinning loser is what the winner
// waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <system_error>

namespace shmem {

using Clock = std::chrono::steady_clock;

/// No sleep is longer: whoever waits looks at its Check (deadline, aborted job, dead peer) at least this often.
constexpr std::chrono::milliseconds kLongestSleep{100};

/// What is to go on while somebody waits: this PE's part in what PEs on other nodes do.
class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  virtual ~Background() = default;
  /// Does what other PEs wait for. True if there was anything. Cheap: waits call it at each look. Thread-safe.
  virtual bool advance() = 0;
};

/// No sleep is longer where there is something in the background.
constexpr std::chrono::microseconds kLongestBackgroundNap{500};

void yield_processor();

/// Whether it pays to yield the processor. If it goes to others of the same job, a yield is the shortest way to what is
/// waited for; if somebody computes there, it is gone for a slice of milliseconds, while who sleeps gets it back as
/// soon as he is woken. Shown by how long yields take: after a long one there are none for a while, and for longer each
/// time that the next one is long, too. Any number of threads.
class YieldWatch {
 public:
  static constexpr std::chrono::microseconds kLong{500};
  static constexpr std::chrono::milliseconds kShortestPause{5};
  static constexpr std::chrono::milliseconds kLongestPause{640};

  [[nodiscard]] bool pays(Clock::time_point now) const {
    return now.time_since_epoch().count() >= resume_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool pays() const { return pays(Clock::now()); }
  void yield() {
    const auto before = Clock::now();
    yield_processor();
    note(before, Clock::now());
  }
  /// A yield has taken so long.
  void note(Clock::time_point before, Clock::time_point after) {
    if (after - before >= kLong) [[unlikely]] {
      pause_from(after);
    }
  }

 private:
  void pause_from(Clock::time_point now);

  // Hints: no order between them is relied upon.
  std::atomic<Clock::rep> resume_{0};
  std::atomic<Clock::rep> pause_{0};
};

/// How long a waiter stays on its processor before it sleeps.
struct WaitPolicy {
  unsigned spins = 0;
  unsigned yields = 0;
  /// Changes from 0, and is woken, when everybody who sleeps is to look at his Check: the job's end. May be none.
  const std::atomic<std::uint32_t>* alarm = nullptr;
  Background* background = nullptr;
  /// Asked before each yield; none: yields are believed to pay.
  YieldWatch* yield_watch = nullptr;

  /// After so many spins and yields.
  [[nodiscard]] bool may_yield(unsigned turns) const {
    return turns < spins + yields && (yield_watch == nullptr || yield_watch->pays());
  }
  void yield() const {
    if (yield_watch != nullptr) {
      yield_watch->yield();
    } else {
      yield_processor();
    }
  }
  /// True if there was anything to do, and therefore may be more: whoever waits looks again before he sleeps.
  bool advance() const {
    if (background != nullptr) [[unlikely]] {
      return background->advance();
    }
    return false;
  }
  [[nodiscard]] std::chrono::nanoseconds limit_nap(std::chrono::nanoseconds nap) const {
    return background != nullptr ? std::min<std::chrono::nanoseconds>(nap, kLongestBackgroundNap) : nap;
  }
};

/// The policy for `runnable` processes or threads that wait for each other on so many processors; 0: on those that this
/// process may use. A process that is bound to a part of its job's processors sees only these.
WaitPolicy wait_policy(int runnable, int processors = 0);

/// A word that grows and that others may sleep on, alone on its cache line. Lives in shared memory; all zero at first.
struct alignas(64) SyncWord {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(SyncWord) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Tells one processor that this is a spin loop.
inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using Alarm = std::atomic<std::uint32_t>;
/// Sleeps at most `limit`, or not at all if the low half of the word is no longer that of `seen`, or there is an alarm.
void futex_sleep(const std::atomic<std::uint64_t>& word, std::uint64_t seen, std::chrono::nanoseconds limit,
                 const Alarm* alarm = nullptr);
void futex_sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit,
                 const Alarm* alarm = nullptr);
void futex_wake_all(const std::atomic<std::uint64_t>& word);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

// What follows works on a SyncWord; templates, so that a test can put the words of a memory model in its place.

/// After a seq_cst change of `word`: wakes sleepers, without a system call when there are none.
template <typename Word>
void wake_sleepers(Word& word) {
  if (word.sleepers.load(std::memory_order_seq_cst) != 0) {
    futex_wake_all(word.value);
  }
}

/// Stores `value`; what the caller stored before is visible to whoever sees it. Wakes sleepers, without a system call
/// when there are none. The exchange and the load of `sleepers` are seq_cst, as are the increment and the second look
/// of Waiting: either the sleeper sees the value or the publisher sees the sleeper.
template <typename Word>
void publish(Word& word, std::uint64_t value) {
  word.value.exchange(value, std::memory_order_seq_cst);
  wake_sleepers(word);
}

/// Spins and yields only: true once done() holds, false when the policy is used up.
template <std::predicate Done>
bool spin_until(const WaitPolicy& policy, Done done) {
  for (unsigned i = 0; i < policy.spins; ++i) {
    if (done()) {
      return true;
    }
    policy.advance();
    cpu_pause();
  }
  for (unsigned i = policy.spins; policy.may_yield(i); ++i) {
    if (done()) {
      return true;
    }
    policy.advance();
    policy.yield();
  }
  return done();
}

/// How long a waiter may sleep before it asks `check` again: a Check that has a deadline says so.
template <std::invocable Check>
std::chrono::nanoseconds longest_sleep(const Check& check) {
  if constexpr (requires { check.longest_sleep(); }) {
    return check.longest_sleep();
  } else {
    return kLongestSleep;
  }
}

/// What one waiter does between two looks at a word: spins, then yields, then sleeps on the word. `check` is asked
/// before each sleep: errc{} to go on, anything else ends the wait with it.
template <std::invocable Check>
class Waiting {
 public:
  Waiting(const WaitPolicy& policy, Check& check) : policy_(policy), check_(check) {}

  /// `seen` is what the word held at the last look.
  template <typename Word>
  std::errc pause(Word& word, std::uint64_t seen) {
    const bool advanced = policy_.advance();
    if (turns_ < policy_.spins) {
      ++turns_;
      cpu_pause();
      return {};
    }
    if (advanced) {
      return ++busy_turns_ % kLook != 0 ? std::errc{} : check_();
    }
    return give_way(word, seen);
  }

 private:
  template <typename Word>
  std::errc give_way(Word& word, std::uint64_t seen) {
    if (policy_.may_yield(turns_)) {
      ++turns_;
      policy_.yield();
      return {};
    }
    const std::errc error = check_();
    if (error != std::errc{}) {
      return error;
    }
    // Pairs with publish(): the count, then the word, both seq_cst.
    word.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (word.value.load(std::memory_order_seq_cst) == seen) {
      futex_sleep(word.value, seen, policy_.limit_nap(longest_sleep(check_)), policy_.alarm);
    }
    // Relaxed: a publisher that still counts us wakes nobody, no more.
    word.sleepers.fetch_sub(1, std::memory_order_relaxed);
    return {};
  }

  static constexpr unsigned kLook = 64;  // turns with something to do between two looks at the Check

  const WaitPolicy& policy_;
  Check& check_;
  unsigned turns_ = 0;
  unsigned busy_turns_ = 0;
};

/// Waits until done(word.value).
template <typename Word, std::predicate<std::uint64_t> Done, std::invocable Check>
std::errc wait_on(Word& word, const WaitPolicy& policy, Done done, Check check) {
  Waiting waiting(policy, check);
  for (;;) {
    // Acquire: pairs with publish(); what was stored before the value is visible after it.
    const std::uint64_t seen = word.value.load(std::memory_order_acquire);
    if (done(seen)) {
      return {};
    }
    if (const std::errc error = waiting.pause(word, seen); error != std::errc{}) {
      // Whoever came and then ended the job, or himself, has come. Acquire: as above.
      return done(word.value.load(std::memory_order_acquire)) ? std::errc{} : error;
    }
  }
}

/// Waits until done() where nobody wakes us: naps of 50 us, doubling to `longest`.
template <std::predicate Done, std::invocable Check>
std::errc wait_polling(const WaitPolicy& policy, std::chrono::nanoseconds longest, Done done, Check check) {
  if (spin_until(policy, done)) {
    return {};
  }
  const std::atomic<std::uint32_t> nobody{0};
  std::chrono::nanoseconds nap = std::chrono::microseconds{50};
  while (!done()) {
    const std::errc error = check();
    if (error != std::errc{}) {
      return done() ? std::errc{} : error;
    }
    if (policy.advance()) {
      continue;
    }
    futex_sleep(nobody, 0, policy.limit_nap(nap), policy.alarm);
    nap = std::min<std::chrono::nanoseconds>(nap * 2, longest);
  }
  return {};
}

}  // namespace shmem
