// SPDX-License-Identifier: Apache-2.0
// What the caches hold at first: different in every part of every block of every PE, and known without having been
// kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shmem/kv/program/layout.hpp"

namespace kv_program {

/// A block of a PE. One that nobody has is all zeros.
struct BlockName {
  int pe;
  std::int64_t block;

  friend bool operator==(const BlockName&, const BlockName&) = default;
};
constexpr BlockName kZeros{-1, 0};

/// Fills `bytes` with what that part of that block holds at first.
void fill_part(std::span<std::byte> bytes, BlockName name, Part part);

}  // namespace kv_program
