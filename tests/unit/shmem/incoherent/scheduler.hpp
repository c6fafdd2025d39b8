// SPDX-License-Identifier: Apache-2.0
// Decides which simulated core takes the next step.
#pragma once

#include <functional>
#include <vector>

#include "tests/unit/shmem/incoherent/fibers.hpp"
#include "tests/unit/shmem/incoherent/random.hpp"

namespace incoherent {

/// Runs one body per core, one at a time, in an order that depends on a seed. Some seeds switch at every step and some
/// seldom; some switch to any core, and some always to the runnable core of the highest priority, which makes the
/// others wait for a long time.
class Scheduler {
 public:
  using Body = std::function<void(int core)>;

  explicit Scheduler(int cores);

  /// Returns when all cores have ended. If all that have not are blocked, it calls `stuck`, which must call cancel().
  void run(std::uint64_t seed, const Body& body, const std::function<void()>& stuck);

  // Called by the running core.
  [[nodiscard]] int current() const { return fibers_.current(); }
  /// May switch to another core.
  void step();
  /// Other cores run until one of them wakes this core.
  void block();

  void wake(int core);
  /// Wakes all cores. From now on no core blocks, and each runs to its end.
  void cancel();
  [[nodiscard]] bool cancelled() const { return cancelled_; }
  [[nodiscard]] bool blocked(int core) const { return place_[static_cast<std::size_t>(core)] == kBlocked; }

 private:
  static constexpr int kBlocked = -1;
  static constexpr int kEnded = -2;

  void serve(int core);
  void set_runnable(int core);
  void remove_runnable(int core, int reason);
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
  std::vector<int> place_;  // the index in runnable_, or kBlocked or kEnded
  std::vector<std::uint64_t> priority_;
  Fibers fibers_;
};

}  // namespace incoherent
