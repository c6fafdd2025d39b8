// SPDX-License-Identifier: Apache-2.0
// Where in the machine the memory of a heap is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shmem/memory/heap_placement.hpp"

namespace shmem {

/// The system's part, as libnuma has it.
class Numa {
 public:
  Numa() = default;
  Numa(const Numa&) = delete;
  Numa& operator=(const Numa&) = delete;
  virtual ~Numa() = default;

  /// Nodes that this process may have memory of; none where the system knows no nodes.
  [[nodiscard]] virtual std::vector<int> nodes() const = 0;
  /// The node of the processor that the calling thread runs on, or -1.
  [[nodiscard]] virtual int my_node() const = 0;
  /// mbind: 0, or what errno was.
  virtual int bind(std::byte* start, std::size_t size, int mode, const std::vector<int>& nodes) = 0;
};

/// The real one.
Numa& system_numa();

/// How a heap lies, for Placement.
struct NumaPlacement {
  std::string text;
  std::string reason;
};

/// Asks for the pages of this PE's heap to be taken from where `policy` says, whoever touches them first: before
/// anybody has. A node that has no more gives no error, the pages come from another one; it is no error either if the
/// system does not do it.
NumaPlacement place(std::byte* heap, std::size_t size, NumaPolicy policy, Numa& numa);

}  // namespace shmem
