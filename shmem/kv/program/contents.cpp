// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/contents.hpp"

#include <algorithm>
#include <cstring>

namespace kv_program {
namespace {

/// SplitMix64.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

void fill_part(std::span<std::byte> bytes, BlockName name, Part part) {
  if (name == kZeros) {
    std::fill(bytes.begin(), bytes.end(), std::byte{});
    return;
  }
  // Fewer than 2^31 blocks, and 2^31 PEs; and so many parts that no two are equal.
  const auto block = static_cast<std::uint64_t>(name.pe) << 32 | static_cast<std::uint64_t>(name.block);
  const auto which = static_cast<std::uint64_t>(part.layer) << 1 | static_cast<std::uint64_t>(part.cache == Cache::kV);
  std::uint64_t state = mix(mix(block + 1) + which);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof state) {
    state += 0x9e3779b97f4a7c15U;
    const std::uint64_t word = mix(state);
    std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
  }
}

}  // namespace kv_program
