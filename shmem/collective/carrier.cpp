// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/carrier.hpp"

#include <algorithm>
#include <cstring>

namespace shmem {
namespace {

/// The line will be written: others have read it, and taking it away from them goes on while this member waits.
void fetch_to_write(const CarriedPlace& place) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(place.value));
#else
  __builtin_prefetch(&place, 1);
#endif
}

/// Members say what they have finished at every so many calls; then a member may be twice as many ahead at least.
constexpr std::uint64_t kFinishedEach = kCarriedTurns / 2;

}  // namespace

Result<void> Carrier::begin() {
  if (failed_) {
    return tl::make_unexpected(*failed_);
  }
  ++count_;
  watch_.reset();
  fetch_to_write(view_.carried(view_.me()).place[(count_ + 1) % kCarriedTurns]);
  // For messages, and for the next team that takes the slot: as TeamSync::entered.
  view_.mine().calls.store(count_, std::memory_order_release);
  return {};
}

template <typename Word>
Result<void> Carrier::wait(Word& word, std::uint64_t number) {
  // Acquire: pairs with publish(); what stands beside the word is visible.
  if (word.value.load(std::memory_order_acquire) >= number) {
    return {};
  }
  if (!watch_) {
    watch_.emplace(job_, map_, view_,
                   BarrierName{.count = count_, .team = slot_, .algorithm = "carried", .call = true});
  }
  const std::errc error = wait_on(
      word, job_.policy, [number](std::uint64_t seen) { return seen >= number; }, [this] { return (*watch_)(); });
  if (error != std::errc{}) {
    failed_ = Error{error, watch_->explain(error)};
    return tl::make_unexpected(*failed_);
  }
  return {};
}

Result<void> Carrier::give(const void* data, std::size_t size) {
  if (count_ > free_) {
    std::uint64_t finished = count_;
    for (int member = 0; member < view_.size(); ++member) {
      if (member == view_.me()) continue;
      auto& theirs = view_.carried(member).finished;
      if (auto ok = wait(theirs, count_ - kCarriedTurns); !ok) {
        return ok;
      }
      finished = std::min(finished, theirs.value.load(std::memory_order_relaxed));
    }
    free_ = finished + kCarriedTurns;
  }
  CarriedPlace& mine = place(view_.me());
  mine.size = size;
  if (size != 0 && size <= kMostCarried) {
    std::memcpy(mine.data.data(), data, size);
  }
  publish(mine, count_);
  return {};
}

Result<Carrier::Given> Carrier::take(int member) {
  CarriedPlace& theirs = place(member);
  if (auto ok = wait(theirs, count_); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return Given{theirs.data.data(), theirs.size};
}

void Carrier::end(bool all_gave) {
  if (all_gave) {
    // They all have begun this call, and so finished those before.
    free_ = std::max(free_, count_ - 1 + kCarriedTurns);
  }
  view_.mine().calls_over.store(count_, std::memory_order_release);
  if (count_ % kFinishedEach == 0) {
    publish(view_.carried(view_.me()).finished, count_);
  }
}

}  // namespace shmem
