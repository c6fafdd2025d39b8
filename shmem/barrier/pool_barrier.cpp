// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/pool_barrier.hpp"

#include <fmt/format.h>

namespace shmem {
namespace {

/// Words of one parity that npu_v2 needs.
int words_needed(int radix, int members) {
  int phases = 0;
  for (std::int64_t distance = 1; distance < members; distance *= radix) {
    ++phases;
  }
  return phases * (radix - 1);
}

}  // namespace

BarrierChoice fit_to_pool(BarrierChoice choice, int members) {
  while (choice.tuning.radix > 2 && 2 * words_needed(choice.tuning.radix, members) > PoolView::kRounds) {
    --choice.tuning.radix;
  }
  return choice;
}

std::errc PoolMonitor::look() {
  int looks = 0;
  for (int i = 0; i < view_.size(); ++i) {
    // Acquire: a member that has left may end.
    const auto has_left = [&] { return view_.left(i).value.load(std::memory_order_acquire) >= name_.count; };
    if (i == view_.me() || has_left()) {
      continue;
    }
    const int pe = view_.map().pe(i);
    const bool dead = looks++ < kMostZombieLooks ? is_dead_or_zombie(job(), pe) : is_dead(job(), pe);
    if (dead && !has_left()) {
      dead_ = i;
      return std::errc::owner_dead;
    }
  }
  return {};
}

std::string PoolMonitor::subject() const {
  return fmt::format("shmem: PE {}, core {}: {}: barrier {} ({}) on the words of the team", job().world_me(),
                     name_.core, name_.call, name_.count, name_.algorithm);
}

std::string PoolMonitor::awaited() const {
  const std::string missing = names_of(view_.map(), [this](int member) {
    // Relaxed: what the member stored before is not read.
    return member == dead_ || view_.entered(member).value.load(std::memory_order_relaxed) < name_.count;
  });
  return missing.empty() ? "no PE: all have arrived" : missing;
}

std::string PoolMonitor::ending(std::errc error) const {
  return error == std::errc::owner_dead ? "cannot complete: a PE has ended" : WaitMonitor::ending(error);
}

Result<void> pool_sync(const Job& job, ThreadCore& core, const PoolView& view, const BarrierChoice& choice,
                       const char* call) {
  // The counter needs no atomic addition: all cores store the same number, and none the next one before all have read
  // this one.
  SyncWord& counter = view.left(view.me());
  const std::uint64_t count = ThreadCore::load(counter) + 1;
  if (core.index() == 0) {
    view.entered(view.me()).value.store(count, std::memory_order_relaxed);
  }
  PoolMonitor monitor(job, view,
                      {.call = call, .algorithm = name_of(choice.algorithm), .core = core.index(), .count = count});
  if (core.index() != 0) {
    monitor.leave_warning();
  }
  WatchedCore watched(core, monitor);
  if (const std::errc error = arrive_and_wait(choice, watched, view, count); error != std::errc{}) {
    return fail(error, monitor.explain(error));
  }
  ThreadCore::store(counter, count);
  return {};
}

}  // namespace shmem
