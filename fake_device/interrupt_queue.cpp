// SPDX-License-Identifier: Apache-2.0
#include "fake_device/interrupt_queue.hpp"

namespace fake_device {

void InterruptQueue::signal(InterruptLine& line) {
  if (line.queued) {
    return;
  }
  const bool none_before = line.slow ? empty() : waiting_.empty();
  if (spent_ < kTurn && none_before) {
    signal_now(line);
    return;
  }
  auto& queue = line.slow ? slow_ : waiting_;
  queue.splice(queue.end(), line.self);
  line.queued = true;
}

void InterruptQueue::forget(InterruptLine& line) {
  if (line.queued) {
    line.self.splice(line.self.end(), line.slow ? slow_ : waiting_, line.place);
    line.queued = false;
  }
}

void InterruptQueue::next_turn() {
  spent_ = 0;
  while (spent_ < kTurn && !empty()) {
    InterruptLine& line = *(waiting_.empty() ? slow_ : waiting_).front();
    forget(line);
    signal_now(line);
  }
}

void InterruptQueue::signal_now(InterruptLine& line) {
  const Time start = clock_();
  signaller_.signal(line.eventfd.get());
  const Time taken = clock_() - start;
  spent_ += taken;
  line.slow = taken > kSlow;
}

}  // namespace fake_device
