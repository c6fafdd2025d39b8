// SPDX-License-Identifier: Apache-2.0
// Waiting: spin, then yield, then sleep. PEs often outnumber processors, and then a spinning waiter delays the PE it
// waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <system_error>

#include "base/pause.hpp"

namespace shmem {

using Clock = std::chrono::steady_clock;

/// No sleep is longer: a waiter calls its Check (deadline, aborted job, dead peer) at least this often.
constexpr std::chrono::milliseconds kLongestSleep{100};

/// Work that must continue during waits: this PE's part in operations of other nodes.
class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  virtual ~Background() = default;
  /// Makes progress for other PEs. True if there was anything to do. Cheap: waits call it at each turn. Thread-safe.
  virtual bool advance() = 0;
  /// Whether others change words of this PE without any call here: a waiter for such a word is not woken.
  [[nodiscard]] virtual bool writes_unnoticed() const { return false; }

  /// From now on a thread calls advance() whenever there is something to do, and wakes waiters for words that changed.
  void is_served_by_a_thread() { served_.store(true, std::memory_order_relaxed); }
  // Relaxed: a waiter that still misses it only sleeps too briefly.
  [[nodiscard]] bool served_by_a_thread() const { return served_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> served_{false};
};

/// No sleep is longer if there is background work that no thread does.
constexpr std::chrono::microseconds kLongestBackgroundNap{500};

void yield_processor();

/// Lets store_barrier_on_all() reach this process. False if the kernel refuses, as Linux before 4.16 does and some
/// containers do.
bool join_store_barriers();
/// A full memory barrier in each running thread of all processes that have joined: what these stored before an access
/// that missed an earlier store of this thread is visible to it afterwards. For a waiter that is about to sleep, so
/// that those who change its words need none. False, without an effect, if the kernel refuses.
bool store_barrier_on_all();

/// Whether yielding the processor pays. If the processor goes to other PEs of the job, a yield is the fastest way to
/// the awaited change; if another program computes there, it is lost for a time slice of milliseconds, while a sleeper
/// gets it back as soon as it is woken. An account decides: long yields add their time, and each yield takes away what
/// a sleep would have cost instead. When the account is full, and PEs have not computed meanwhile, there are no yields
/// for a while, and for longer each time that it soon is full again. For one thread.
class YieldWatch {
 public:
  /// PEs that wait for each other give the processor up earlier.
  static constexpr std::chrono::milliseconds kLong{1};
  static constexpr std::chrono::microseconds kSleep{16};
  static constexpr std::chrono::milliseconds kFull{6};
  /// Other programs compute if PEs have not used so much meanwhile.
  static constexpr std::chrono::milliseconds kUnused{2};
  static constexpr std::chrono::milliseconds kShortestPause{5};
  static constexpr std::chrono::milliseconds kLongestPause{640};
  /// The clock costs a tenth of a yield. While the account is empty, one yield in so many is timed, but each of the
  /// first ones of a thread.
  static constexpr unsigned kTimedEach = 16;
  static constexpr unsigned kFirst = 64;

  static YieldWatch& of_this_thread();

  [[nodiscard]] bool pays(Clock::time_point now) const { return now >= resume_; }
  [[nodiscard]] bool pays() const { return resume_ == Clock::time_point{} || pays(Clock::now()); }
  /// Counts a yield. True if it is to be timed, and note() called.
  [[nodiscard]] bool times_next() { return ++yields_ <= kFirst || !is_empty() || yields_ % kTimedEach == 0; }
  /// Reports the duration of a yield. `unused` gives the processor time that the PEs have not used since some moment;
  /// nothing: unknown. It is called after long yields only.
  template <std::invocable<> Unused>
  void note(Clock::time_point before, Clock::time_point after, Unused unused) {
    const bool is_long = after - before >= kLong;
    add((is_long ? after - before : Clock::duration::zero()) - kSleep);
    if (is_long && (!unused_ || account_ == kFull)) [[unlikely]] {
      judge(unused(), after);
    }
  }
  /// No long yields lately.
  [[nodiscard]] bool is_empty() const { return account_ == Clock::duration::zero(); }
  /// Ends a pause: the thread has moved to another processor.
  void resume() { resume_ = {}; }

 private:
  void add(Clock::duration time);
  void judge(std::optional<Clock::duration> unused, Clock::time_point now);

  std::uint64_t yields_ = 0;
  Clock::duration account_{};
  std::optional<Clock::duration> unused_{};  // at the first long yield since the account was empty, or the last pause
  Clock::duration pause_{};                  // the last one since the account was empty
  Clock::time_point resume_{};               // its end
};

class SharingWatch;

/// How long a waiter keeps its processor before it sleeps.
struct WaitPolicy {
  unsigned spins = 0;
  unsigned yields = 0;
  /// Changes from 0, and is woken, when all sleepers must call their Check: the job's end. May be nullptr.
  const std::atomic<std::uint32_t>* alarm = nullptr;
  Background* background = nullptr;
  /// Where the PEs that wait for each other run: sharing.hpp; nullptr: unknown.
  SharingWatch* sharing = nullptr;

  /// After so many spins and yields of this thread.
  [[nodiscard]] bool may_yield(unsigned turns) const {
    return turns < spins + yields && YieldWatch::of_this_thread().pays();
  }
  /// Also tells the other PEs if yields are brief here, or goes to where they are for others.
  void yield() const;
  /// True if there was anything to do, so that there may be more: a waiter then checks again before it sleeps.
  bool advance() const {
    if (background != nullptr) [[unlikely]] {
      return background->advance();
    }
    return false;
  }
  [[nodiscard]] std::chrono::nanoseconds limit_nap(std::chrono::nanoseconds nap) const {
    const bool short_naps = background != nullptr && !background->served_by_a_thread();
    return short_naps ? std::min<std::chrono::nanoseconds>(nap, kLongestBackgroundNap) : nap;
  }
  /// The same for a word that PEs of other nodes change, too.
  [[nodiscard]] std::chrono::nanoseconds limit_word_nap(std::chrono::nanoseconds nap) const {
    const bool unnoticed = background != nullptr && background->writes_unnoticed();
    return unnoticed ? std::min<std::chrono::nanoseconds>(nap, kLongestBackgroundNap) : limit_nap(nap);
  }
};

/// The policy for `runnable` processes or threads that wait for each other on `processors`; 0: those that this process
/// may use. A process that is bound to a part of its job's processors sees only these.
WaitPolicy wait_policy(int runnable, int processors = 0);

/// A growing word that other threads and processes may sleep on, alone on its cache line. In shared memory; all zero at
/// first.
struct alignas(64) SyncWord {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(SyncWord) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

using Alarm = std::atomic<std::uint32_t>;
/// Sleeps up to `limit`, or not at all if the low half of the word differs from that of `seen`, or the alarm is set.
void futex_sleep(const std::atomic<std::uint64_t>& word, std::uint64_t seen, std::chrono::nanoseconds limit,
                 const Alarm* alarm = nullptr);
void futex_sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds limit,
                 const Alarm* alarm = nullptr);
void futex_wake_all(const std::atomic<std::uint64_t>& word);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

// The following works on a SyncWord; templates, so that a test can use the words of a memory model instead.

/// After a seq_cst change of `word`: wakes sleepers, without a system call when there are none.
template <typename Word>
void wake_sleepers(Word& word) {
  if (word.sleepers.load(std::memory_order_seq_cst) != 0) {
    futex_wake_all(word.value);
  }
}

/// Stores `value`; the caller's earlier stores are visible once it is. Wakes sleepers, without a system call when there
/// are none. The exchange and the load of `sleepers` are seq_cst, as are the increment and the second check of Waiting:
/// either the sleeper sees the value or the publisher sees the sleeper.
template <typename Word>
void publish(Word& word, std::uint64_t value) {
  word.value.exchange(value, std::memory_order_seq_cst);
  wake_sleepers(word);
}

/// The turns of a wait before it may sleep: spins, and then yields. A waiter spins for longer while the others run on
/// other processors: if it slept, the kernel would move one of them to its processor. It does not spin if one of them
/// runs on its own processor.
class Turns {
 public:
  explicit Turns(const WaitPolicy& policy) : policy_(policy) {}

  /// Spins or yields once. False: the waiter may sleep.
  bool take() {
    if (turn_ < policy_.spins && turn_ != kFirstLook) [[likely]] {
      ++turn_;
      base::pause_processor();
      return true;
    }
    return take_slowly();
  }
  /// Whether the Check must be called after this turn, because the waiter has spun for a while.
  [[nodiscard]] bool needs_check() const { return needs_check_; }
  /// There was something to do meanwhile.
  void begin_again() {
    turn_ = 0;
    needs_check_ = false;
  }

 private:
  static constexpr unsigned kFirstLook = 128;  // a wait between two processors has ended before

  bool take_slowly();
  bool spin_on();

  const WaitPolicy& policy_;
  unsigned turn_ = 0;
  unsigned more_spins_ = 0;
  bool needs_check_ = false;
  bool has_spun_on_ = false;
  Clock::time_point end_{};
};

/// Only spins and yields: true once done() holds, false when the policy is used up, or `check` returns an error.
template <std::predicate Done, std::invocable Check>
bool spin_until(const WaitPolicy& policy, Done done, Check&& check) {
  for (Turns turns(policy);;) {
    if (done()) {
      return true;
    }
    if (!turns.take() || (turns.needs_check() && check() != std::errc{})) {
      return false;
    }
    policy.advance();
  }
}
template <std::predicate Done>
bool spin_until(const WaitPolicy& policy, Done done) {
  return spin_until(policy, done, [] { return std::errc{}; });
}

/// How long a waiter may sleep before it calls `check` again, if the Check has a deadline.
template <std::invocable Check>
std::chrono::nanoseconds longest_sleep(const Check& check) {
  if constexpr (requires { check.longest_sleep(); }) {
    return check.longest_sleep();
  } else {
    return kLongestSleep;
  }
}
template <std::invocable Check>
std::chrono::nanoseconds longest_sleep(const std::reference_wrapper<Check>& check) {
  return longest_sleep(check.get());
}

/// A waiter's action between two checks of a word: spin, then yield, then sleep on the word. `check` is called before
/// each sleep: errc{} to continue, anything else ends the wait. Background work begins the spins and yields again: a PE
/// that was served soon asks for more, if what it asks for depends on the answer.
template <std::invocable Check>
class Waiting {
 public:
  Waiting(const WaitPolicy& policy, Check& check) : policy_(policy), check_(check), turns_(policy) {}

  /// `seen` is the word's value at the last check.
  template <typename Word>
  std::errc pause(Word& word, std::uint64_t seen) {
    if (policy_.advance()) {
      turns_.begin_again();
      return ++busy_turns_ % kLook != 0 ? std::errc{} : check_();
    }
    if (turns_.take()) [[likely]] {
      return turns_.needs_check() ? check_() : std::errc{};
    }
    return sleep(word, seen);
  }

 private:
  template <typename Word>
  std::errc sleep(Word& word, std::uint64_t seen) {
    const std::errc error = check_();
    if (error != std::errc{}) {
      return error;
    }
    // Pairs with publish(): the count, then the word, both seq_cst.
    word.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (word.value.load(std::memory_order_seq_cst) == seen) {
      futex_sleep(word.value, seen, policy_.limit_nap(longest_sleep(check_)), policy_.alarm);
    }
    // Relaxed: a publisher that still counts this waiter makes one superfluous wake-up call.
    word.sleepers.fetch_sub(1, std::memory_order_relaxed);
    return {};
  }

  static constexpr unsigned kLook = 64;  // turns with background work between two calls of the Check

  const WaitPolicy& policy_;
  Check& check_;
  Turns turns_;
  unsigned busy_turns_ = 0;
};

/// Waits until done(word.value).
template <typename Word, std::predicate<std::uint64_t> Done, std::invocable Check>
std::errc wait_on(Word& word, const WaitPolicy& policy, Done done, Check check) {
  Waiting waiting(policy, check);
  for (;;) {
    // Acquire: pairs with publish(); stores before the value are visible after it.
    const std::uint64_t seen = word.value.load(std::memory_order_acquire);
    if (done(seen)) {
      return {};
    }
    if (const std::errc error = waiting.pause(word, seen); error != std::errc{}) {
      // A member that arrived and then aborted or died still counts as arrived. Acquire: as above.
      return done(word.value.load(std::memory_order_acquire)) ? std::errc{} : error;
    }
  }
}

/// Waits until done() without a wake-up: sleeps of 50 us, doubling to `longest`. After background work it spins and
/// yields again, as Waiting does.
template <std::predicate Done, std::invocable Check>
std::errc wait_polling(const WaitPolicy& policy, std::chrono::nanoseconds longest, Done done, Check check) {
  if (spin_until(policy, done, check)) {
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
      spin_until(policy, done, check);
      continue;
    }
    futex_sleep(nobody, 0, policy.limit_word_nap(nap), policy.alarm);
    nap = std::min<std::chrono::nanoseconds>(nap * 2, longest);
  }
  return {};
}

}  // namespace shmem
