// SPDX-License-Identifier: Apache-2.0
// Device memory that may be taken away while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "driver/backend.hpp"
#include "driver/process_hooks.hpp"
#include "driver/system_calls.hpp"

namespace gba {

/// A region of a device, mapped. Two things can happen to it that must not end the process or touch the device:
///  - The device is unplugged, or its memory decoding is switched off: the kernel answers the next access with SIGBUS.
///    A handler puts ordinary memory in the place of the region. It hands every SIGBUS elsewhere on to the handler that
///    was installed before it.
///  - The process forks: the child gets ordinary memory, so that it cannot ring its parent's doorbells.
/// Either way the device is lost for the process. Movable. Not thread-safe; the memory itself is.
class BarMapping {
 public:
  BarMapping() = default;

  /// Fails with protocol_error if it has fewer than `needed` bytes, whatever the device said before. REQUIRES: the
  /// region is mappable. `backend` outlives the mapping.
  static Result<BarMapping> make(Backend& backend, std::uint32_t region, std::size_t needed);

  /// Puts ordinary memory in the place of all mapped regions of `backend`'s device, which the kernel wants back. Not
  /// for signal handlers.
  static void detach(const Backend& backend) { MemoryEntry::detach(backend); }

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  explicit operator bool() const { return static_cast<bool>(mapping_); }

 private:
  BarMapping(base::Mapping mapping, MemoryEntry entry) : mapping_(std::move(mapping)), entry_(std::move(entry)) {}

  base::Mapping mapping_;
  MemoryEntry entry_;  // last: it goes before the mapping does
};

}  // namespace gba
