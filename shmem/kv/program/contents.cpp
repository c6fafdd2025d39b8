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

void fill_block(std::span<std::byte> block, int pe, Cache cache, std::int64_t index) {
  const auto name = (static_cast<std::uint64_t>(pe) << 32 | static_cast<std::uint64_t>(index)) << 1 |
                    static_cast<std::uint64_t>(cache == Cache::kV);
  std::uint64_t state = mix(name + 1);
  for (std::size_t at = 0; at < block.size(); at += sizeof state) {
    state += 0x9e3779b97f4a7c15U;
    const std::uint64_t word = mix(state);
    std::memcpy(&block[at], &word, std::min(sizeof word, block.size() - at));
  }
}

}  // namespace kv_program
