// SPDX-License-Identifier: Apache-2.0
// What the engine needs of a connection: its memory and its interrupts. The seam between engine and server.
#pragma once

#include <cstdint>
#include <optional>

#include "fake_device/shared_pages.hpp"
#include "fake_device/sigbus_guard.hpp"

namespace fake_device {

/// One client, seen from the engine. The calls come from within Engine's calls and must not call back into it.
class PortLink {
 public:
  PortLink() = default;
  PortLink(const PortLink&) = delete;
  PortLink& operator=(const PortLink&) = delete;

  [[nodiscard]] virtual const SharedPages& doorbells() const = 0;
  [[nodiscard]] virtual const SharedPages& flags() const = 0;
  /// The 8 bytes at `iova` in the client's memory, mapped here; nothing if there is no such mapping, or the device may
  /// not write there. Valid until the link says otherwise through Engine::forget_memory.
  virtual std::optional<GuardedWord> resolve(std::uint64_t iova) = 0;
  /// Sends the word to client memory that has no file behind it. False: `iova` is not such memory.
  virtual bool send_store(unsigned group, std::uint64_t iova, std::uint64_t word) = 0;
  /// Raises a vector after the stores sent before.
  virtual void raise(unsigned vector) = 0;
  /// The function is pulled out: uapi rule 36.
  virtual void removed() = 0;
  /// The client took memory away that it had given: drop it, later.
  virtual void memory_lost() = 0;

 protected:
  ~PortLink() = default;
};

}  // namespace fake_device
