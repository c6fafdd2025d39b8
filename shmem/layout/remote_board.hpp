// SPDX-License-Identifier: Apache-2.0
// What a PE publishes to PEs on other nodes, which read it over the network: the segment Segment::kBoard.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shmem/memory/registered_memory.hpp"

namespace shmem {

/// The parts of a PE's memory that PEs on other nodes may access, the same on all PEs. Those from kFirstRegistered on
/// come and go: memory that the program has registered, by slot.
enum class Segment : std::uint8_t { kHeap, kGlobals, kBoard, kFirstRegistered };
/// From the start to the end.
constexpr std::size_t kSegments = 3;
constexpr std::size_t kMostSegments = kSegments + kMostRegistered;
static_assert(kMostSegments <= 256);

constexpr Segment registered_segment(std::size_t slot) {
  return static_cast<Segment>(kSegments + slot);
}

/// A byte of another PE's memory. `pe` is its number in the world.
struct RemotePlace {
  int pe;
  Segment segment;
  std::uint64_t offset;
};

/// For the first member of a team on its node: offload/inter_node_barrier.hpp. All zero at first; numbers of barriers
/// only grow.
struct alignas(64) RemoteArrival {
  std::array<std::atomic<std::uint64_t>, 2> word;     // as PublishedArrival
  std::atomic<std::uint64_t> alarm;                   // a barrier that another PE pulls; set by others
  std::uint64_t last = 0;                             // the last barrier entered here; the owner's alone
  std::array<std::atomic<std::uint64_t>, 2> refused;  // by other leaders: team/refusals.hpp
};

/// By team slot on this node. Teams in slots beyond these do not use the device.
using RemoteBoard = std::array<RemoteArrival, 256>;

}  // namespace shmem
