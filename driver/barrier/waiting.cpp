// SPDX-License-Identifier: Apache-2.0
// How a member waits for the end of a barrier: the one loop, and its steps.
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "base/pause.hpp"
#include "driver/barrier/barrier.hpp"

namespace gba::barrier {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstNap = milliseconds{1};
constexpr nanoseconds kLongestNap = milliseconds{100};
// While words are waited for, which is rare, and no member wakes the waiter.
constexpr nanoseconds kFirstWordsNap = microseconds{50};
constexpr nanoseconds kLongestWordsNap = milliseconds{1};

std::uint64_t count_of(nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

}  // namespace

Outcome Barrier::sleep(nanoseconds limit, const gba_barrier_waiting& waiting) {
  const Outcome now = test();
  if (now != Outcome::kPending) {
    return now;
  }
  if (stage_ != Stage::kRung) {
    nap(std::min(limit, kLongestWordsNap), waiting);
    return test();
  }
  if (others_pull()) {
    return pull_for_others();
  }
  const int status = gba_group_sleep(group_.membership.get(), sequence_, count_of(limit));
  return status == 0 ? released() : not_released(status);
}

void Barrier::nap(nanoseconds limit, const gba_barrier_waiting& waiting) {
  if (limit.count() == 0) {
    return;
  }
  if (waiting.nap != nullptr) {
    waiting.nap(waiting.context, count_of(limit));
    return;
  }
  const timespec time{.tv_sec = 0, .tv_nsec = limit.count()};
  ::nanosleep(&time, nullptr);
}

Outcome Barrier::poll() {
  const Outcome now = test();
  if (now != Outcome::kPending) {
    return now;
  }
  const auto time = Clock::now();
  if (polled_ != sequence_) {
    polled_ = sequence_;
    look_again_ = kFirstNap;
  } else if (time < next_look_) {
    return now;
  } else {
    look_again_ = std::min(2 * look_again_, kLongestNap);
  }
  const bool first = look_again_ == kFirstNap;
  next_look_ = time + look_again_;
  return first ? now : sleep({});
}

bool Barrier::spin_again(const gba_barrier_waiting& waiting, std::uint32_t turn) const {
  if (waiting.progress != nullptr) {
    waiting.progress(waiting.context);
  }
  if (stage_ == Stage::kPulled && !words_.mapped()) {
    return false;  // each look is a message
  }
  if (turn < waiting.spins) {
    base::pause_processor();
    return true;
  }
  if (turn - waiting.spins >= waiting.yields) {
    return false;
  }
  if (waiting.yield != nullptr) {
    return waiting.yield(waiting.context) != 0;
  }
  ::sched_yield();
  return true;
}

Outcome Barrier::spin(const gba_barrier_waiting& waiting) {
  Outcome now = test();
  for (std::uint32_t turn = 0; now == Outcome::kPending && spin_again(waiting, turn); ++turn) {
    now = test();
  }
  return now;
}

Outcome Barrier::wait_longer(const gba_barrier_waiting& waiting, std::uint64_t timeout_ns) {
  const auto deadline = Deadline::after_ns(timeout_ns);
  Outcome now = spin(waiting);
  Stage stage = stage_;
  nanoseconds length = stage == Stage::kRung ? kFirstNap : kFirstWordsNap;
  while (now == Outcome::kPending) {
    std::uint64_t longest = count_of(kLongestNap);
    int ended = deadline.passed() ? -ETIMEDOUT : 0;
    if (ended == 0 && waiting.check != nullptr) {
      ended = waiting.check(waiting.context, &longest);
    }
    if (ended != 0) {
      now = test();  // a member that arrived, and then ended the job, has arrived
      return now == Outcome::kPending ? failed(ended) : now;
    }
    const nanoseconds most =
        std::min(length, nanoseconds{static_cast<std::int64_t>(std::min(longest, count_of(kLongestNap)))});
    now = sleep(deadline.left(most), waiting);
    length = std::min(2 * length, stage_ == Stage::kRung ? kLongestNap : kLongestWordsNap);
    if (stage_ != stage && now == Outcome::kPending) {
      stage = stage_;
      length = stage == Stage::kRung ? kFirstNap : kFirstWordsNap;
      now = spin(waiting);
    }
  }
  return now;
}

}  // namespace gba::barrier
