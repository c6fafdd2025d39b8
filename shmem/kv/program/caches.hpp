// SPDX-License-Identifier: Apache-2.0
// The K and V caches of this PE, in symmetric memory.
#pragma once

#include "shmem/kv/program/contents.hpp"
#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/world.hpp"

namespace kv_program {

/// Made and ended collectively.
class Caches {
 public:
  explicit Caches(const Options& options)
      : block_bytes_(options.block_bytes()),
        blocks_(options.shape.blocks),
        k_(options.cache_bytes()),
        v_(options.cache_bytes()) {}
  /// False, on all PEs, if there is not so much memory.
  [[nodiscard]] bool there() const { return k_.get() != nullptr && v_.get() != nullptr; }

  /// With what this PE's blocks hold at first.
  void fill() const {
    for (std::int64_t i = 0; i < blocks_; ++i) {
      fill_block({block(Cache::kK, i), block_bytes_}, shmem_my_pe(), Cache::kK, i);
      fill_block({block(Cache::kV, i), block_bytes_}, shmem_my_pe(), Cache::kV, i);
    }
  }

  [[nodiscard]] std::byte* k() const { return k_.get(); }
  [[nodiscard]] std::byte* v() const { return v_.get(); }
  [[nodiscard]] std::byte* block(Cache cache, std::int64_t index) const {
    return (cache == Cache::kK ? k() : v()) + static_cast<std::size_t>(index) * block_bytes_;
  }
  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }

 private:
  std::size_t block_bytes_;
  std::int64_t blocks_;
  SymmetricMemory k_, v_;
};

}  // namespace kv_program
