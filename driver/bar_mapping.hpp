// SPDX-License-Identifier: Apache-2.0
// Device memory that may be taken away while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "driver/backend.hpp"
#include "driver/mapping.hpp"

namespace gba {

/// A region of a device, mapped. Two things can happen to it that must not end the process or touch the device:
///  - The device is unplugged, or its memory decoding is switched off: the kernel answers the next access with SIGBUS.
///  A
///    handler, which acts on such regions only and hands every other SIGBUS on to the handler before it, puts ordinary
///    memory in its place.
///  - The process forks: the child gets ordinary memory, so that it cannot ring its parent's doorbells.
/// Either way the device is lost for the process. Movable; not thread-safe but for its memory.
class BarMapping {
 public:
  BarMapping() = default;
  BarMapping(const BarMapping&) = delete;
  BarMapping& operator=(const BarMapping&) = delete;
  BarMapping(BarMapping&& other) noexcept
      : mapping_(std::move(other.mapping_)), place_(std::exchange(other.place_, kNoPlace)) {}
  BarMapping& operator=(BarMapping&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~BarMapping();

  /// REQUIRES: the region is mappable. `backend` outlives the mapping.
  static Result<BarMapping> make(Backend& backend, std::uint32_t region);

  /// Puts ordinary memory in the place of all that is mapped of `backend`'s device, which the kernel wants back. Not
  /// for signal handlers.
  static void detach(const Backend& backend);

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  explicit operator bool() const { return static_cast<bool>(mapping_); }

 private:
  static constexpr int kNoPlace = -1;
  BarMapping(Mapping mapping, int place) : mapping_(std::move(mapping)), place_(place) {}

  Mapping mapping_;
  int place_ = kNoPlace;  // in the table of the signal handler
};

}  // namespace gba
