// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/incoherent/scheduler.hpp"

#include <algorithm>
#include <array>

namespace incoherent {

Scheduler::Scheduler(int cores)
    : place_(static_cast<std::size_t>(cores), kEnded),
      priority_(static_cast<std::size_t>(cores)),
      fibers_(cores, [this](int core) { serve(core); }) {}

void Scheduler::run(std::uint64_t seed, const Body& body, const std::function<void()>& stuck) {
  random_ = Random(seed);
  body_ = &body;
  stuck_ = &stuck;
  cancelled_ = false;
  by_priority_ = random_.chance(512);
  switch_chance_ = std::array{1024U, 512U, 128U, 16U}[random_.below(4)];
  alive_ = static_cast<int>(place_.size());
  for (int core = 0; core < alive_; ++core) {
    set_runnable(core);
    priority_[static_cast<std::size_t>(core)] = random_.next();
  }
  fibers_.switch_to(pick());
}

void Scheduler::serve(int core) {
  for (;;) {
    (*body_)(core);
    remove_runnable(core, kEnded);
    if (--alive_ == 0) {
      fibers_.switch_to(Fibers::kCaller);
    } else {
      go_on();
    }
  }
}

void Scheduler::step() {
  if (cancelled_ || !random_.chance(switch_chance_)) {
    return;
  }
  priority_[static_cast<std::size_t>(current())] = random_.next();
  fibers_.switch_to(pick());
}

void Scheduler::block() {
  if (!cancelled_) {
    remove_runnable(current(), kBlocked);
    go_on();
  }
}

/// Switches to another core, because the running one is blocked or has ended.
void Scheduler::go_on() {
  if (runnable_.empty()) {
    (*stuck_)();
  }
  fibers_.switch_to(pick());
}

void Scheduler::wake(int core) {
  if (blocked(core)) {
    set_runnable(core);
  }
}

void Scheduler::cancel() {
  cancelled_ = true;
  for (int core = 0; core < static_cast<int>(place_.size()); ++core) {
    wake(core);
  }
}

int Scheduler::pick() {
  if (!by_priority_) {
    return runnable_[random_.below(runnable_.size())];
  }
  return *std::ranges::max_element(runnable_, {},
                                   [this](int core) { return priority_[static_cast<std::size_t>(core)]; });
}

void Scheduler::set_runnable(int core) {
  place_[static_cast<std::size_t>(core)] = static_cast<int>(runnable_.size());
  runnable_.push_back(core);
}

void Scheduler::remove_runnable(int core, int reason) {
  const int place = place_[static_cast<std::size_t>(core)];
  const int last = runnable_.back();
  runnable_[static_cast<std::size_t>(place)] = last;
  place_[static_cast<std::size_t>(last)] = place;
  runnable_.pop_back();
  place_[static_cast<std::size_t>(core)] = reason;
}

}  // namespace incoherent
