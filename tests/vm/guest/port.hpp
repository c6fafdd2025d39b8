// SPDX-License-Identifier: Apache-2.0
// The device as a port: commands through BAR0, arrivals through BAR2.
#pragma once

#include <cstdint>

#include "driver/mmio.hpp"
#include "driver/system_calls.hpp"
#include "uapi/gba_regs.h"

namespace guest {

struct Group {
  unsigned id;
  std::uint32_t key;
};

/// Owns the three BARs. Failures throw std::exception with the reason.
class Port {
 public:
  using Flag = gba::MmioWord<std::uint64_t>;

  Port(base::Mapping control, base::Mapping doorbells, base::Mapping flags);

  [[nodiscard]] std::uint64_t read(std::uint64_t offset) const;
  [[nodiscard]] std::uint32_t read_half(std::uint64_t offset) const;
  void write(std::uint64_t offset, std::uint64_t value) const;

  /// A group of members 0..members-1, enabled, with interrupts on.
  [[nodiscard]] Group make_group(unsigned members) const;
  /// Joins as member 0; the device stores releases at `release_address`.
  void join(const Group& group, std::uint64_t release_address) const;
  /// Frees the group. Disables and leaves it first, so that no error release is needed.
  void give_back(const Group& group) const;
  /// The group's slot in BAR4.
  [[nodiscard]] Flag bar_flag(const Group& group) const;

  /// Arrives as member 0. Counts the kicks that were needed.
  void arrive(const Group& group, std::uint64_t sequence, bool notify = false);
  /// Waits until `flag` is `word`. After 20 s it throws with the device's registers.
  void await(const Group& group, const Flag& flag, std::uint64_t word) const;
  /// Waits until STATUS is `status`; throws after 20 s.
  void await_status(const Group& group, std::uint64_t status) const;
  /// Arrives and waits, rounds 1 to `rounds`.
  void run_barriers(const Group& group, const Flag& flag, unsigned rounds);

  /// True if the device has announced that it sleeps: uapi rule 14.
  [[nodiscard]] bool device_sleeps() const;
  [[nodiscard]] unsigned kicks() const { return kicks_; }

 private:
  void command(unsigned opcode, const Group& group = {}) const;

  base::Mapping control_;
  base::Mapping doorbells_;
  base::Mapping flags_;
  bool has_wakeup_;
  unsigned kicks_ = 0;
};

}  // namespace guest
