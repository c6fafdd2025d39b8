// SPDX-License-Identifier: Apache-2.0
// The interrupts of one function: eventfds of its client, by index and vector, and how they are signalled.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fake_device/closer.hpp"
#include "fake_device/interrupt_queue.hpp"
#include "uapi/gba_device.h"

namespace fake_device {

/// Used by one thread. Errors are positive errno values; 0 is success.
class IrqTable {
 public:
  /// `queue` must outlive the table.
  IrqTable(unsigned msix_vectors, InterruptQueue& queue);
  IrqTable(const IrqTable&) = delete;
  IrqTable& operator=(const IrqTable&) = delete;
  ~IrqTable();

  [[nodiscard]] unsigned count(unsigned index) const { return static_cast<unsigned>(lines_[index].size()); }
  /// Every form of SET_IRQS. `flags` are VFIO_USER_IRQ_*; EINVAL for a combination that means nothing.
  int set(unsigned index, std::uint32_t flags, std::uint32_t start, std::uint32_t count,
          std::span<const std::byte> bools, std::vector<Given> fds);
  /// Interrupts that wait for their vector to be unmasked, as the MSI-X pending bit array shows them: vectors
  /// 64 * word and following.
  [[nodiscard]] std::uint64_t pending(unsigned word) const;
  /// Has the eventfd of a vector signalled; remembers it while the vector is masked.
  void raise(unsigned index, unsigned vector);

 private:
  using Line = InterruptLine;

  int arm(std::span<Line> lines, std::vector<Given> fds);
  void apply(Line& line, std::uint32_t action);
  void fire(Line& line);

  InterruptQueue& queue_;
  std::array<std::vector<Line>, GBA_NUM_IRQS> lines_;
};

}  // namespace fake_device
