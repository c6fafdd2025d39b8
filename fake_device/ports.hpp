// SPDX-License-Identifier: Apache-2.0
// The device's side of each port: its faults, the outcome of its last command, its memberships; and the device's
// counters. Part of the model: no I/O, used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fake_device/effects.hpp"
#include "uapi/gba_regs.h"

namespace fake_device {

/// The counters, in the order of their registers.
enum class Counter : std::uint8_t {
  kArrivals,
  kReleases,
  kStale,
  kRejected,
  kDmaFaults,
  kTimeouts,
  kResets,
  kErrors,
  kInterrupts,
  kWakeups,
};
inline constexpr unsigned kCounters = 10;

/// What FAULT_INFO says of a fault, and FAULT_ADDR.
struct Fault {
  unsigned kind = 0;
  unsigned group = 0;
  unsigned member = 0;
  std::uint64_t value = 0;
  std::uint64_t address = 0;
};

/// FAULT, FAULT_INFO and FAULT_ADDR of one port: uapi rule 3.
class FaultRegisters {
 public:
  /// True if the kind's bit was 0.
  bool set(const Fault& fault);
  void clear(std::uint64_t bits);
  [[nodiscard]] std::uint64_t bits() const { return bits_; }
  [[nodiscard]] std::uint64_t info() const { return info_; }
  [[nodiscard]] std::uint64_t address() const { return address_; }

 private:
  std::uint64_t bits_ = 0;
  std::uint64_t info_ = 0;
  std::uint64_t address_ = 0;
};

inline constexpr int kNoMember = -1;

struct Port {
  bool connected = false;
  bool privileged = false;
  bool link_up = true;  // of the cable, whether or not a client is connected
  FaultRegisters faults;
  std::uint64_t cmd_status = 0;
  std::uint64_t cmd_result = 0;
  std::uint64_t command = 0;  // that runs while CMD_STATUS is BUSY
  Time command_due = kNever;
  std::vector<int> member_of;            // by group; kNoMember
  std::vector<std::uint8_t> wrong_keys;  // by group, since the group was allocated
};

/// All ports, and the only way from the model to Effects, so that every store, interrupt and fault is counted.
class Ports {
 public:
  /// Port dimensions.ports, one past the ordinary ones, is the privileged port.
  Ports(const Dimensions& dimensions, Effects& effects);

  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(ports_.size()); }
  [[nodiscard]] Port& operator[](unsigned port) { return ports_[port]; }
  [[nodiscard]] const Port& operator[](unsigned port) const { return ports_[port]; }

  /// Uapi rule 21. False: the port has a DMA fault now.
  bool store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) {
    if (effects_.store_flag(port, group, address, word)) [[likely]] {
      return true;
    }
    dma_fault(port, group, address);
    return false;
  }
  void dma_fault(unsigned port, unsigned group, std::uint64_t address);
  void raise(unsigned port, unsigned vector);
  /// For a port that may have no client.
  void raise_error(unsigned port) {
    if (ports_[port].connected) {
      raise(port, error_vector_);
    }
  }
  void fault(unsigned port, const Fault& fault);
  /// A fault of an arrival, which is refused: uapi rule 10.
  void reject(unsigned port, const Fault& fault);
  void join(unsigned port, unsigned group, unsigned member);
  void leave(unsigned port, unsigned group);
  void open(unsigned group, bool open) { effects_.opened(group, open); }
  Time command_done(unsigned port) { return effects_.command_done(port); }
  std::uint32_t random_key() { return effects_.random_key(); }

  void count(Counter counter) { ++counters_[static_cast<unsigned>(counter)]; }
  [[nodiscard]] std::uint64_t counter(unsigned index) const { return counters_[index]; }
  [[nodiscard]] unsigned error_vector() const { return error_vector_; }

 private:
  Effects& effects_;
  const unsigned error_vector_;
  std::vector<Port> ports_;
  std::array<std::uint64_t, kCounters> counters_{};
};

}  // namespace fake_device
