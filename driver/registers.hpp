// SPDX-License-Identifier: Apache-2.0
// A region's registers, whether they can be mapped or not.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "driver/backend.hpp"
#include "driver/bar_mapping.hpp"
#include "driver/mmio.hpp"

namespace gba {

/// The registers of one region: loads and stores where the backend can map it, the backend's read and write otherwise.
/// Thread-safe. A view of the backend, which outlives it.
class Registers {
 public:
  /// Looks how the region can be reached. Fails with no_such_device if it has fewer than `needed` bytes.
  static Result<Registers> open(Backend& backend, std::uint32_t region, std::uint64_t needed);

  template <std::unsigned_integral T>
  Result<T> read(std::uint64_t offset) const {
    if (auto good = check(offset, sizeof(T)); !good) return tl::make_unexpected(good.error());
    if constexpr (sizeof(T) >= 4) {
      if (mapping_) {
        const T value = MmioRegion(mapping_.bytes()).word<T>(offset).load();
        // What a device that is lost by this very access seems to say is nothing of its own.
        if (backend_->lost()) return tl::make_unexpected(backend_->loss_error());
        return value;
      }
    }
    T value{};
    auto done = backend_->read(region_, offset, std::as_writable_bytes(std::span(&value, 1)));
    if (!done) return tl::make_unexpected(done.error());
    return value;
  }

  template <std::unsigned_integral T>
  Result<void> write(std::uint64_t offset, T value) const {
    if (auto good = check(offset, sizeof(T)); !good) return good;
    if constexpr (sizeof(T) >= 4) {
      if (mapping_) {
        MmioRegion(mapping_.bytes()).word<T>(offset).store(value);
        return {};
      }
    }
    return backend_->write(region_, offset, std::as_bytes(std::span(&value, 1)));
  }

  /// A write that nobody waits for; its failure stays unknown. REQUIRES: `offset` is that of a register.
  template <std::unsigned_integral T>
  void post(std::uint64_t offset, T value) const {
    if (mapping_) {
      MmioRegion(mapping_.bytes()).word<T>(offset).store(value);
    } else {
      (void)backend_->post(region_, offset, std::as_bytes(std::span(&value, 1)));
    }
  }

 private:
  Registers(Backend& backend, std::uint32_t region, std::uint64_t size)
      : backend_(&backend), region_(region), size_(size) {}

  [[nodiscard]] Result<void> check(std::uint64_t offset, std::size_t size) const;

  Backend* backend_;
  std::uint32_t region_;
  std::uint64_t size_;
  BarMapping mapping_;
};

}  // namespace gba
