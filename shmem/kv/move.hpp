// SPDX-License-Identifier: Apache-2.0
// What a plan consists of.
#pragma once

#include <compare>
#include <cstdint>

namespace shmem::kv {

/// A block of one PE goes to a block of another one, or of the same: all layers of it, K and V. PEs by their number in
/// the team that shuffles. Ordered by source, so that what lies side by side there is side by side in a sorted list.
struct Move {
  std::int64_t source_pe, source_block, destination_pe, destination_block;

  friend bool operator==(const Move&, const Move&) = default;
  friend auto operator<=>(const Move&, const Move&) = default;
};

}  // namespace shmem::kv
