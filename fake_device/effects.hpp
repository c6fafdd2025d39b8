// SPDX-License-Identifier: Apache-2.0
// What the model of the device does to the world around it, and the time that both sides use.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace fake_device {

/// Nanoseconds of a steady clock. The model never reads one: time is passed in.
using Time = std::uint64_t;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

/// How large a device is.
struct Dimensions {
  unsigned groups;
  unsigned members;  // of a group, at most
  unsigned ports;
  [[nodiscard]] unsigned error_vector() const { return groups; }
  /// GROUP_LIMIT when the device is powered on: uapi rule 37.
  [[nodiscard]] unsigned group_limit() const { return groups < 4 ? 1 : groups / 4; }
  [[nodiscard]] unsigned vectors() const { return groups + 1; }
};

/// Implemented by the engine that runs the model. The model calls these while it handles a register access, an arrival
/// or a timer; none of them may call back into the model.
class Effects {
 public:
  Effects() = default;
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  /// Stores `word` to a member's release flag: `address` is an IOVA of the port, or GBA_RELEASE_ADDR_BAR_FLAGS for the
  /// port's BAR4 slot of the group. False: it cannot be stored there (a DMA fault).
  virtual bool store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) = 0;
  /// Raises an MSI-X vector of the port, after every flag stored before.
  virtual void raise(unsigned port, unsigned vector) = 0;
  /// The port is now a member of the group: clear its doorbell slot and its BAR4 flag, then look at the slot.
  virtual void joined(unsigned port, unsigned group) = 0;
  /// True: the group is enabled for the first time since it was allocated, and from now on arrivals at it are answered.
  /// False: it is free. An arrival before is a fault, which need not be noticed at once.
  virtual void opened(unsigned group, bool open) = 0;
  /// The port is a member no more.
  virtual void left(unsigned port, unsigned group) = 0;
  /// When the command that the port writes now is done; 0: at once.
  virtual Time command_done(unsigned /*port*/) { return 0; }
  /// A number that cannot be guessed.
  virtual std::uint32_t random_key() = 0;

 protected:
  ~Effects() = default;
};

/// Now, on the steady clock.
inline Time read_clock() {
  return static_cast<Time>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kSecond = 1'000'000'000;

}  // namespace fake_device
