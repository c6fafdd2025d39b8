// SPDX-License-Identifier: Apache-2.0
// The region through which a client asks for faults: uapi/gba_debug.h.
#pragma once

#include <cstdint>
#include <string>

#include "fake_device/engine.hpp"

namespace fake_device {

/// One port's registers of it. Used by one thread.
class DebugRegion {
 public:
  /// `engine` must outlive the region.
  explicit DebugRegion(Engine& engine) : engine_(engine) {}

  /// An access that hits no register reads 0 or is dropped.
  [[nodiscard]] std::uint64_t read(std::uint64_t offset, std::uint64_t size) const;
  /// What was asked for, and what came of it, for the log; "" if nothing was.
  std::string write(std::uint64_t offset, std::uint64_t size, std::uint64_t value, Time now);

 private:
  std::uint64_t* argument(std::uint64_t offset);
  [[nodiscard]] Injection injection(std::uint64_t kind) const;
  std::string inject(std::uint64_t kind, Time now);

  Engine& engine_;
  std::uint64_t result_ = 0;
  std::uint64_t group_ = GBA_DEBUG_ANY;
  std::uint64_t member_ = GBA_DEBUG_ANY;
  std::uint64_t port_ = GBA_DEBUG_ANY;
  std::uint64_t count_ = 1;
  std::uint64_t after_ = 0;
  std::uint64_t time_ = 0;
  std::uint64_t spread_ = 0;
  std::uint64_t value_ = 0;
};

}  // namespace fake_device
