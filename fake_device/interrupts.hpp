// SPDX-License-Identifier: Apache-2.0
// The interrupts of one function: eventfds of its client, by index and vector, and how they are signalled.
#pragma once

#include <linux/aio_abi.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "fake_device/closer.hpp"
#include "uapi/gba_device.h"

namespace fake_device {

/// Used by one thread. A client can make its eventfd blocking and fill it at any moment, also between a poll and the
/// write; the write then blocks, and all clients with it. The kernel's own signal never blocks, so an asynchronous read
/// of nothing is submitted, whose completion signals the eventfd. If the kernel has no asynchronous I/O for this
/// process, the signal is a poll and a write.
class EventSignaller {
 public:
  EventSignaller();
  EventSignaller(const EventSignaller&) = delete;
  EventSignaller& operator=(const EventSignaller&) = delete;
  ~EventSignaller();

  /// REQUIRES: an eventfd. One that is full stays full.
  void signal(int eventfd);
  /// False: only non-blocking eventfds may be signalled, and a client can still make the device wait.
  [[nodiscard]] bool never_waits() const { return context_ != 0; }

 private:
  bool submit(int eventfd);
  void forget_completions();
  [[nodiscard]] bool works();

  base::UniqueFd nothing_;
  aio_context_t context_ = 0;
  unsigned outstanding_ = 0;  // completions not yet taken out of the ring
};

/// Used by one thread. Errors are positive errno values; 0 is success.
class IrqTable {
 public:
  /// `signaller` must outlive the table.
  IrqTable(unsigned msix_vectors, EventSignaller& signaller);

  [[nodiscard]] unsigned count(unsigned index) const { return static_cast<unsigned>(lines_[index].size()); }
  /// Every form of SET_IRQS. `flags` are VFIO_USER_IRQ_*; EINVAL for a combination that means nothing.
  int set(unsigned index, std::uint32_t flags, std::uint32_t start, std::uint32_t count,
          std::span<const std::byte> bools, std::vector<Given> fds);
  /// Interrupts that wait for their vector to be unmasked, as the MSI-X pending bit array shows them: vectors
  /// 64 * word and following.
  [[nodiscard]] std::uint64_t pending(unsigned word) const;
  /// Signals the eventfd of a vector; remembers it while the vector is masked.
  void raise(unsigned index, unsigned vector);

 private:
  struct Line {
    Given eventfd;
    bool masked = false;
    bool pending = false;
  };

  int arm(std::span<Line> lines, std::vector<Given> fds);
  void apply(Line& line, std::uint32_t action);
  void fire(Line& line);

  EventSignaller& signaller_;
  std::array<std::vector<Line>, GBA_NUM_IRQS> lines_;
};

}  // namespace fake_device
