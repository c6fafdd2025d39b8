// SPDX-License-Identifier: Apache-2.0
// What the caches must hold after the shuffles, found out without copying anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/program/caches.hpp"

namespace kv_program {

/// For each block of each PE: whose block of the beginning it is now. Moves are applied one after the other; the bytes
/// of a block are made anew when they are compared, so this needs memory for one block, whatever the caches' size.
class Expected {
 public:
  Expected(int pes, std::int64_t blocks);

  void apply(const shmem::kv::PairPlan& plan);

  /// Compares every byte of every block of the K and V caches of all PEs, read from where they are. No PE changes them
  /// meanwhile. Returns what is wrong, or "".
  [[nodiscard]] std::string compare(const Caches& caches) const;

 private:
  struct Origin {
    int pe;
    std::int64_t block;
  };
  [[nodiscard]] std::string compare_block(const Caches& caches, Cache cache, int pe, std::int64_t block) const;

  std::vector<std::vector<Origin>> origin_;  // [pe][block]
};

}  // namespace kv_program
