// SPDX-License-Identifier: Apache-2.0
// How a cache lies in memory. Errors say what is wrong; the caller adds where.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shmem/result.hpp"

namespace shmem::kv {

/// As SHMEMX_KV_APART and so on (shmemx_kv.h).
enum class Format { kApart, kByLayer, kInterleaved, kByBlock, kLatent };
constexpr int kFormats = 5;

struct Shape {
  Format format;
  std::int64_t layers, blocks, heads, page, head_dim, element_size;
};

/// Where one PE's cache begins.
struct CachePlace {
  std::byte* k = nullptr;
  std::byte* v = nullptr;  // only where K and V are apart
};

/// Any format, as the copies see it: every block is in so many chunks, one in each plane, and a plane is an array of
/// chunks, by block. Where K and V are apart, the second half of the planes is in V.
struct Layout {
  std::size_t blocks = 0;
  std::size_t planes = 0;
  std::size_t chunk = 0;  // bytes
  bool apart = false;

  [[nodiscard]] std::size_t plane_bytes() const { return blocks * chunk; }
  [[nodiscard]] std::size_t block_bytes() const { return planes * chunk; }
  /// Of K, and of V where that is apart.
  [[nodiscard]] std::size_t buffer_bytes() const { return (apart ? planes / 2 : planes) * plane_bytes(); }

  [[nodiscard]] std::byte* plane(const CachePlace& cache, std::size_t index) const {
    const std::size_t in_k = apart ? planes / 2 : planes;
    return index < in_k ? cache.k + index * plane_bytes() : cache.v + (index - in_k) * plane_bytes();
  }
};

/// Error: no such format, a dimension is not positive, the element size is not 1, 2, 4 or 8, or the whole does not fit
/// an address space.
Result<Layout> layout_of(const Shape& shape);

}  // namespace shmem::kv
