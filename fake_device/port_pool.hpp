// SPDX-License-Identifier: Apache-2.0
// Which ports are free.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace fake_device {

/// Ports first..first + count - 1. Used by one thread.
class PortPool {
 public:
  PortPool(unsigned first, unsigned count) : first_(first), taken_(count, false) {}

  /// The lowest free port.
  std::optional<unsigned> take() {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    if (free == taken_.end()) {
      return std::nullopt;
    }
    *free = true;
    return first_ + static_cast<unsigned>(free - taken_.begin());
  }
  void give_back(unsigned port) { taken_[port - first_] = false; }
  [[nodiscard]] std::size_t size() const { return taken_.size(); }

 private:
  unsigned first_;
  std::vector<bool> taken_;
};

}  // namespace fake_device
