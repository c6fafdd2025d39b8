// SPDX-License-Identifier: Apache-2.0
// A region's registers, whether they can be mapped or not, and the commands that run through them.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "driver/backend.hpp"
#include "driver/bar_mapping.hpp"
#include "driver/mmio.hpp"
#include "driver/process_hooks.hpp"

namespace gba {

/// The registers of one region: loads and stores as far as the backend can map it, the backend's read and write behind.
/// Thread-safe. A view of the backend, which outlives it.
class Registers {
 public:
  /// Finds out how the region can be reached. Fails with no_such_device if it has fewer than `needed` bytes.
  static Result<Registers> open(Backend& backend, std::uint32_t region, std::uint64_t needed);

  template <std::unsigned_integral T>
  Result<T> read(std::uint64_t offset) const {
    if (auto good = check(offset, sizeof(T)); !good) {
      return good.error();
    }
    if constexpr (sizeof(T) >= 4) {
      if (is_mapped(offset, sizeof(T))) {
        const T value = MmioRegion(mapping_.bytes()).word<T>(offset).load();
        // If this very access lost the device, the value is not the device's.
        if (backend_->lost()) {
          return backend_->loss_error();
        }
        return value;
      }
    }
    T value{};
    auto done = backend_->read(region_, offset, std::as_writable_bytes(std::span(&value, 1)));
    if (!done) {
      return done.error();
    }
    return value;
  }

  template <std::unsigned_integral T>
  Result<void> write(std::uint64_t offset, T value) const {
    if (auto good = check(offset, sizeof(T)); !good) {
      return good;
    }
    if constexpr (sizeof(T) >= 4) {
      if (is_mapped(offset, sizeof(T))) {
        MmioRegion(mapping_.bytes()).word<T>(offset).store(value);
        // As above: this very access may have raised SIGBUS.
        if (backend_->lost()) {
          return backend_->loss_error();
        }
        return {};
      }
    }
    return backend_->write(region_, offset, std::as_bytes(std::span(&value, 1)));
  }

  /// A posted write; its failure stays unknown. REQUIRES: `offset` is that of a register.
  template <std::unsigned_integral T>
  void post(std::uint64_t offset, T value) const {
    if (is_mapped(offset, sizeof(T))) {
      MmioRegion(mapping_.bytes()).word<T>(offset).store(value);
    } else {
      (void)backend_->post(region_, offset, std::as_bytes(std::span(&value, 1)));
    }
  }

 private:
  Registers(Backend& backend, std::uint32_t region, std::uint64_t size)
      : backend_(&backend), region_(region), size_(size) {}

  [[nodiscard]] bool is_mapped(std::uint64_t offset, std::size_t size) const {
    return offset + size <= mapping_.bytes().size();
  }
  [[nodiscard]] Result<void> check(std::uint64_t offset, std::size_t size) const;

  Backend* backend_;
  std::uint32_t region_;
  std::uint64_t size_;
  BarMapping mapping_;
};

struct Command {
  std::uint8_t opcode = 0;
  std::uint8_t group = 0;
  std::uint16_t member = 0;
  std::uint32_t key = 0;
};

/// Runs commands, one at a time (uapi rule 4). Thread-safe. A view of what it is made from.
class Commands {
 public:
  /// A device that is busy with one command for longer than `timeout` is lost.
  Commands(Backend& backend, const Registers& control, std::chrono::nanoseconds timeout = std::chrono::seconds{5})
      : backend_(backend), control_(control), timeout_(timeout) {}

  /// Runs the command and returns CMD_RESULT. `doing` is for the error text: "join group 3 as member 5". A refusal is
  /// the errno that gba.h lists for it.
  Result<std::uint64_t> run(const Command& command, const std::string& doing);

 private:
  Result<std::uint64_t> finished_status();

  Backend& backend_;
  const Registers& control_;
  const std::chrono::nanoseconds timeout_;
  ForkMutex mutex_;  // the registers hold one command
};

}  // namespace gba
