// SPDX-License-Identifier: Apache-2.0
// What the caches must hold after the shuffles, found out without copying anything.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shmem/kv/move.hpp"
#include "shmem/kv/program/caches.hpp"

namespace kv_program {

/// For each block of each PE: whose block of the beginning it is now. The bytes of a block are made anew when they are
/// compared, so this needs little memory, whatever the caches' size.
class Expected {
 public:
  Expected(int pes, std::int64_t blocks);

  /// One shuffle: each destination gets what its source held before, and, if `clears`, sources that are nobody's
  /// destination become zeros.
  void apply(std::span<const shmem::kv::Move> moves, bool clears);

  /// What block `block` of PE `pe` is now.
  [[nodiscard]] BlockName at(std::int64_t pe, std::int64_t block) const {
    return now_.at(static_cast<std::size_t>(pe)).at(static_cast<std::size_t>(block));
  }

  /// Compares every byte of this PE's caches. Returns what is wrong, or "".
  [[nodiscard]] std::string compare(const Caches& caches) const;

 private:
  [[nodiscard]] std::string compare_part(const Caches& caches, Part part, std::int64_t block,
                                         std::span<std::byte> right) const;

  std::vector<std::vector<BlockName>> now_;  // [pe][block]
};

}  // namespace kv_program
