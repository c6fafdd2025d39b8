// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/eager.hpp"

#include <algorithm>
#include <cstring>

namespace shmem {
namespace {

/// Prefetches a line for writing: other members have read it, and invalidating their copies overlaps with the wait.
void fetch_to_write(const EagerSlot& place) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(place.value));
#else
  __builtin_prefetch(&place, 1);
#endif
}

/// Members publish what they have finished once per kFinishedEach calls, so a member can be at least that far ahead.
constexpr std::uint64_t kFinishedEach = kEagerSlots / 2;

}  // namespace

Result<void> EagerChannel::begin() {
  if (failed_) {
    return *failed_;
  }
  ++count_;
  watch_.reset();
  fetch_to_write(view_.eager(view_.me()).place[(count_ + 1) % kEagerSlots]);
  // For messages, and for the next team that gets the slot, like TeamSync::entered.
  view_.mine().calls.store(count_, std::memory_order_release);
  return {};
}

template <typename Word>
Result<void> EagerChannel::wait(Word& word, std::uint64_t number) {
  // Acquire: pairs with publish(); the data next to the word is visible.
  if (word.value.load(std::memory_order_acquire) >= number) {
    return {};
  }
  if (!watch_) {
    watch_.emplace(job_, map_, view_, BarrierName{.count = count_, .team = slot_, .algorithm = "eager", .call = true});
  }
  const std::errc error = wait_on(
      word, job_.policy, [number](std::uint64_t seen) { return seen >= number; }, [this] { return (*watch_)(); });
  if (error != std::errc{}) {
    failed_ = Error{error, watch_->explain(error)};
    return *failed_;
  }
  return {};
}

Result<void> EagerChannel::give(const void* data, std::size_t size) {
  if (count_ > free_) {
    std::uint64_t finished = count_;
    for (int member = 0; member < view_.size(); ++member) {
      if (member == view_.me()) {
        continue;
      }
      auto& theirs = view_.eager(member).finished;
      if (auto ok = wait(theirs, count_ - kEagerSlots); !ok) {
        return ok;
      }
      finished = std::min(finished, theirs.value.load(std::memory_order_relaxed));
    }
    free_ = finished + kEagerSlots;
  }
  EagerSlot& mine = place(view_.me());
  mine.size = size;
  if (size != 0 && size <= kEagerLimit) {
    std::memcpy(mine.data.data(), data, size);
  }
  publish(mine, count_);
  return {};
}

Result<EagerChannel::Given> EagerChannel::take(int member) {
  EagerSlot& theirs = place(member);
  if (auto ok = wait(theirs, count_); !ok) {
    return ok.error();
  }
  return Given{theirs.data.data(), theirs.size};
}

void EagerChannel::end(Begun by_all) {
  // A member that has begun a call has finished the calls before it.
  if (by_all == Begun::kThis) {
    free_ = std::max(free_, count_ - 1 + kEagerSlots);
  } else if (by_all == Begun::kLast) {
    free_ = std::max(free_, count_ - 2 + kEagerSlots);
  }
  view_.mine().calls_over.store(count_, std::memory_order_release);
  if (count_ % kFinishedEach == 0) {
    publish(view_.eager(view_.me()).finished, count_);
  }
}

}  // namespace shmem
