// SPDX-License-Identifier: Apache-2.0
// The shape of a KV cache and the blocks that a PE sends of it. Errors say what is wrong; the caller adds where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shmem/result.hpp"

namespace shmem::kv {

/// [blocks][heads][page][head_dim] in elements of element_size bytes; K and V have one of these each.
struct CacheShape {
  std::int64_t blocks, heads, page, head_dim, element_size;
};

struct CacheSize {
  std::size_t blocks;
  std::size_t block_bytes;
  [[nodiscard]] std::size_t bytes() const { return blocks * block_bytes; }
};

/// Error: a dimension is not positive, the element size is not 1, 2 or 4, or the whole does not fit an address space.
Result<CacheSize> cache_size(const CacheShape& shape);

/// Block source[i] here goes to block destination[i] of the partner.
struct Moves {
  std::span<const std::int64_t> source, destination;
};

/// Error: an index is not one of `blocks` blocks, or a destination is named twice. The text names table and entry.
Result<void> check_moves(const Moves& moves, std::size_t blocks);

}  // namespace shmem::kv
