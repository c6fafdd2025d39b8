// SPDX-License-Identifier: Apache-2.0
// What a PE shows to those on other nodes, who read it by the network: the segment Segment::kBoard.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace shmem {

/// Of the first member of a team on its node: barrier/gba_span.hpp. All zero at first; numbers of barriers only grow.
struct alignas(64) FarArrival {
  std::array<std::atomic<std::uint64_t>, 2> word;  // as PublishedArrival
  std::atomic<std::uint64_t> alarm;                // a barrier that somebody else pulls; set by others
  std::uint64_t last;                              // barrier that has been entered here; the owner's alone
};

/// By team slot on this node. Teams of slots beyond these do without the device.
using FarBoard = std::array<FarArrival, 256>;

}  // namespace shmem
