// SPDX-License-Identifier: Apache-2.0
// What the caches hold at first: different in every block of every PE, and known without having been kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kv_program {

enum class Cache { kK, kV };

/// Fills `block` with what block `index` of that cache of `pe` holds at first.
void fill_block(std::span<std::byte> block, int pe, Cache cache, std::int64_t index);

}  // namespace kv_program
