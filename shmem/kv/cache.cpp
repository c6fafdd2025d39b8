// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/cache.hpp"

#include <array>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

namespace shmem::kv {
namespace {

tl::unexpected<Error> invalid(std::string what) {
  return fail(std::errc::invalid_argument, std::move(what));
}

Result<void> check_indices(std::span<const std::int64_t> table, const char* name, std::size_t blocks) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] < 0 || static_cast<std::size_t>(table[i]) >= blocks) {
      return invalid(std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(table[i]) +
                     ", not one of the cache's blocks 0.." + std::to_string(blocks - 1));
    }
  }
  return {};
}

Result<void> check_once(std::span<const std::int64_t> destination, std::size_t blocks) {
  std::vector<bool> used(blocks);
  for (std::size_t i = 0; i < destination.size(); ++i) {
    const auto block = static_cast<std::size_t>(destination[i]);
    if (used[block]) {
      return invalid("dst_block_table[" + std::to_string(i) + "] is " + std::to_string(block) +
                     ", which an earlier entry names too");
    }
    used[block] = true;
  }
  return {};
}

}  // namespace

Result<CacheSize> cache_size(const CacheShape& shape) {
  if (shape.element_size != 1 && shape.element_size != 2 && shape.element_size != 4) {
    return invalid("element size " + std::to_string(shape.element_size) + " is not 1, 2 or 4");
  }
  std::size_t bytes = 1;
  for (const std::int64_t dimension : {shape.heads, shape.page, shape.head_dim, shape.element_size, shape.blocks}) {
    std::size_t product = 0;
    if (dimension <= 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(dimension), &product) ||
        product > static_cast<std::size_t>(PTRDIFF_MAX)) {
      return invalid("a cache of " + std::to_string(shape.blocks) + " blocks of " + std::to_string(shape.heads) +
                     " heads x " + std::to_string(shape.page) + " x " + std::to_string(shape.head_dim) +
                     " elements cannot be: dimensions are positive, and the whole fits into memory");
    }
    bytes = product;
  }
  const auto blocks = static_cast<std::size_t>(shape.blocks);
  return CacheSize{blocks, bytes / blocks};
}

Result<void> check_moves(const Moves& moves, std::size_t blocks) {
  assert(moves.source.size() == moves.destination.size());
  if (auto ok = check_indices(moves.source, "src_block_table", blocks); !ok) {
    return ok;
  }
  if (auto ok = check_indices(moves.destination, "dst_block_table", blocks); !ok) {
    return ok;
  }
  return check_once(moves.destination, blocks);
}

}  // namespace shmem::kv
