// SPDX-License-Identifier: Apache-2.0
// Blocks that must wait in memory until their destination has been read: so much of each at a time as there is room
// for, the same part on all PEs.
#pragma once

#include <vector>

#include "shmem/kv/layout.hpp"

namespace shmem::kv {

/// A part of a block: the same bytes of some chunks that lie in planes behind each other.
struct Window {
  std::size_t first_plane, planes;
  std::size_t offset, size;  // within each chunk

  [[nodiscard]] std::size_t bytes() const { return planes * size; }
};

/// All parts of a block, one after the other, the largest first: as much as each of `blocks` blocks may have of `room`
/// bytes, a cache line at least. None without blocks.
std::vector<Window> windows_of(const Layout& layout, std::size_t blocks, std::size_t room);

}  // namespace shmem::kv
