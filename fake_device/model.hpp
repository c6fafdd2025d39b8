// SPDX-License-Identifier: Apache-2.0
// The Global Barrier Accelerator as a function of register accesses, arrivals and time.
#pragma once

#include <cstdint>
#include <vector>

#include "fake_device/device_group.hpp"
#include "fake_device/effects.hpp"
#include "fake_device/ports.hpp"
#include "fake_device/profile.hpp"

namespace fake_device {

/// Pure: no I/O, no threads, no clock; everything it does to the world goes through Effects. One thread at a time.
/// `port` arguments are below ports(); the last one is the privileged port.
class Model {
 public:
  /// `effects` and `layout` must outlive the model.
  /// `features`: CAPS bits besides those that every such device has.
  Model(const Dimensions& dimensions, const Layout& layout, Effects& effects, std::uint64_t features = 0);

  [[nodiscard]] const Dimensions& dimensions() const { return dimensions_; }
  [[nodiscard]] unsigned privileged_port() const { return dimensions_.ports; }

  // ---- Connections: uapi rule 24
  void connect(unsigned port);
  /// FLR and VFIO reset.
  void reset_port(unsigned port);
  void disconnect(unsigned port);

  // ---- BAR0
  std::uint64_t read(unsigned port, std::uint64_t offset, std::uint64_t size, Time now = 0);
  void write(unsigned port, std::uint64_t offset, std::uint64_t size, std::uint64_t value);

  // ---- Arrivals and time
  [[nodiscard]] bool is_member(unsigned port, unsigned group) const { return member_of(port, group) != kNoMember; }
  /// `word` was found in the port's doorbell slot of group `slot`.
  void arrive(unsigned port, unsigned slot, std::uint64_t word, Time now);
  /// A write to the doorbell page that is no arrival: uapi rule 19.
  void bad_doorbell(unsigned port, std::uint64_t offset, std::uint64_t value);
  /// When expire() has something to do; kNever.
  [[nodiscard]] Time next_deadline() const { return next_deadline_; }
  void expire(Time now);

  // ---- What the engine finds out
  /// A store that store_flag took on, and that failed later.
  void flag_store_failed(unsigned port, unsigned group, std::uint64_t address);
  void count_wakeup() { ports_.count(Counter::kWakeups); }
  /// All links go down at once: the device is about to end.
  void shut_down();

  // ---- What may befall a device: uapi rules 23, 34 and 35
  void set_link(unsigned port, bool up);
  void break_down();
  void reset_device();
  void reset_group(unsigned group);
  /// What SEQUENCE of a group is after ALLOC, from now on; at most GBA_FLAG_SEQUENCE_MASK.
  void start_sequences_at(std::uint64_t sequence) { first_sequence_ = sequence; }
  /// The port that is this member; kNoPort.
  [[nodiscard]] int port_of(unsigned group, unsigned member) const { return groups_[group].find_port(member); }
  [[nodiscard]] int member_of(unsigned port, unsigned group) const { return ports_[port].member_of[group]; }
  [[nodiscard]] std::uint64_t sequence(unsigned group) const { return groups_[group].sequence(); }
  [[nodiscard]] unsigned allocated_groups() const;
  /// Those that count for this port: uapi rule 37.
  [[nodiscard]] unsigned groups_held(unsigned port) const;
  [[nodiscard]] std::uint64_t counter(Counter counter) const { return ports_.counter(static_cast<unsigned>(counter)); }

 private:
  void begin_command(unsigned port, std::uint64_t command);
  void run_command(unsigned port, std::uint64_t command);
  void end_commands(Time now);
  std::uint64_t allocate(unsigned port, std::uint64_t& result);
  std::uint64_t free_group(unsigned port, unsigned group);
  std::uint64_t reclaim(unsigned port, unsigned group);
  std::uint64_t join(unsigned port, unsigned group, unsigned member, std::uint32_t key);
  std::uint64_t leave(unsigned port, unsigned group);
  std::uint64_t wrong_key(unsigned port, unsigned group, unsigned member, std::uint32_t key);
  [[nodiscard]] bool known(unsigned group) const { return group < groups_.size() && groups_[group].allocated(); }

  [[nodiscard]] std::uint64_t read_device(unsigned port, const RegisterRef& target);
  [[nodiscard]] std::uint64_t read_group(unsigned port, const RegisterRef& target, Time now) const;
  bool write_device(unsigned port, const RegisterRef& target, std::uint64_t value);
  bool set_group_register(unsigned port, const RegisterRef& target, std::uint64_t value);
  [[nodiscard]] bool may_write(unsigned port, const RegisterRef& target);
  [[nodiscard]] std::uint64_t device_status(unsigned port) const;
  void fail_all(unsigned code);
  void refresh_deadline();

  const Dimensions dimensions_;
  const Layout& layout_;
  const std::uint64_t features_;
  Ports ports_;
  std::vector<DeviceGroup> groups_;
  std::uint64_t group_limit_;  // of an ordinary port
  std::uint64_t first_sequence_ = 0;
  bool fatal_ = false;
  Time next_command_ = kNever;  // when one is done that takes time
  Time next_deadline_ = kNever;
};

}  // namespace fake_device
