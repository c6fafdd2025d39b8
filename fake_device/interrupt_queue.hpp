// SPDX-License-Identifier: Apache-2.0
// How much time interrupts may take: the kernel goes through all who watch an eventfd each time that it is signalled,
// and a client can have it watched any number of times.
#pragma once

#include <list>

#include "fake_device/closer.hpp"
#include "fake_device/effects.hpp"
#include "fake_device/event_signaller.hpp"

namespace fake_device {

/// One interrupt of a client.
struct InterruptLine {
  InterruptLine() { place = self.insert(self.end(), this); }
  InterruptLine(const InterruptLine&) = delete;
  InterruptLine& operator=(const InterruptLine&) = delete;
  ~InterruptLine() = default;

  Given eventfd;
  bool masked = false;
  bool pending = false;  // while it is masked
  bool slow = false;     // its last signal took long
  bool queued = false;
  std::list<InterruptLine*> self;  // the element, unless it is in a queue: to wait needs no memory
  std::list<InterruptLine*>::iterator place;
};

/// Signals eventfds at once, until this has taken kTurn since the last next_turn(); then they wait, each once, as MSI-X
/// has it. Those that took long the last time come after the others. Used by one thread.
class InterruptQueue {
 public:
  static constexpr Time kTurn = 200 * kMicrosecond;
  static constexpr Time kSlow = 50 * kMicrosecond;
  using Clock = Time (*)();

  /// `signaller` must outlive the queue.
  explicit InterruptQueue(EventSignaller& signaller, Clock clock = read_clock) : signaller_(signaller), clock_(clock) {}
  InterruptQueue(const InterruptQueue&) = delete;
  InterruptQueue& operator=(const InterruptQueue&) = delete;

  /// REQUIRES: the line has an eventfd. It is in one queue at most until forget().
  void signal(InterruptLine& line);
  /// It is not to be signalled any more.
  void forget(InterruptLine& line);
  /// Signals those that wait, for up to kTurn and one more.
  void next_turn();
  /// None waits.
  [[nodiscard]] bool empty() const { return waiting_.empty() && slow_.empty(); }
  [[nodiscard]] bool never_waits() const { return signaller_.never_waits(); }

 private:
  void signal_now(InterruptLine& line);

  EventSignaller& signaller_;
  const Clock clock_;
  Time spent_ = 0;  // in this turn
  std::list<InterruptLine*> waiting_;
  std::list<InterruptLine*> slow_;
};

}  // namespace fake_device
