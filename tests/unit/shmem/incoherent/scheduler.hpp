// SPDX-License-Identifier: Apache-2.0
// Decides which simulated core takes the next step.
#pragma once

#include <functional>
#include <vector>

#include "tests/unit/shmem/incoherent/fibers.hpp"
#include "tests/unit/shmem/incoherent/random.hpp"

namespace incoherent {

/// Runs one body per core, one at a time, in an order that a seed decides. Some seeds switch at every step and some
/// seldom; some to any core, and some always to the runnable one of the highest priority, which makes the others wait
/// for long.
class Scheduler {
 public:
  using Body = std::function<void(int core)>;

  explicit Scheduler(int cores);

  /// Returns when all cores have ended. `stuck` is called when those that have not are all blocked; it calls cancel().
  void run(std::uint64_t seed, const Body& body, const std::function<void()>& stuck);

  // Called by the running core.
  [[nodiscard]] int current() const { return fibers_.current(); }
  /// Perhaps others run now.
  void step();
  /// Others run until somebody wakes this core.
  void block();

  void wake(int core);
  /// Wakes all. From now on nobody is blocked and each core runs to its end.
  void cancel();
  [[nodiscard]] bool cancelled() const { return cancelled_; }
  [[nodiscard]] bool blocked(int core) const { return place_[static_cast<std::size_t>(core)] == kBlocked; }

 private:
  static constexpr int kBlocked = -1;
  static constexpr int kEnded = -2;

  void serve(int core);
  void set_runnable(int core);
  void allot_scratch(int core, int reason);
  void go_on();
  [[nodiscard]] int pick();

  Random random_;
  const Body* body_ = nullptr;
  const std::function<void()>* stuck_ = nullptr;
  bool cancelled_ = false;
  bool by_priority_ = false;
  unsigned switch_chance_ = 0;
  int alive_ = 0;
  std::vector<int> runnable_;
  std::vector<int> place_;  // in runnable_, or why the core is not there
  std::vector<std::uint64_t> priority_;
  Fibers fibers_;
};

}  // namespace incoherent
