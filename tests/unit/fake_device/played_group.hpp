// SPDX-License-Identifier: Apache-2.0
// A group of the model and its specification, executed step by step and compared.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/fake_device/barrier_specification.hpp"

namespace fake_device_test {

struct Step {
  enum Action { kArrive, kLeave, kDisconnect, kReset, kExpire, kDisable, kEnable, kFree, kReclaim } action = kArrive;
  unsigned who = 0;            // the member of kArrive and kLeave, the port of kDisconnect
  std::uint64_t sequence = 0;  // of kArrive, counted from the start
  bool notify = false;         // of kArrive
};
void PrintTo(const Step& step, std::ostream* out);

/// Reconnects all ports of `device` and allocates group 0 again. The device has one more port than the group members.
class PlayedGroup {
 public:
  PlayedGroup(Device& device, const Setup& setup);

  /// Applies the step to both and compares their stores and interrupts. Cheap.
  void step(const Step& step);
  /// Compares the registers, the flags and the counters.
  void check();
  [[nodiscard]] const Specification& specification() const { return spec_; }

 private:
  void play(const Step& step);
  void compare_events();
  void check_timer();
  void check_registers();
  void check_counters();
  [[nodiscard]] Counts counted() const;
  [[nodiscard]] std::uint64_t control() const;

  Device& device_;
  const Setup setup_;
  Specification spec_;
  Counts before_;
};

}  // namespace fake_device_test
