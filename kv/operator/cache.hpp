// SPDX-License-Identifier: Apache-2.0
// How a cache is laid out in memory, and its checks. Errors say what is wrong; the caller adds where.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/operator/operator_team.hpp"
#include "shmem/result.hpp"

namespace shmem::kv {

/// The values of SHMEMX_KV_APART, ... (shmemx_kv.h).
enum class Format { kApart, kByLayer, kInterleaved, kByBlock, kLatent };
constexpr int kFormats = 5;

struct Shape {
  Format format{};
  std::int64_t layers = 0, blocks = 0, heads = 0, page = 0, head_dim = 0, element_size = 0;
};

/// Where one PE's cache begins.
struct CachePlace {
  std::byte* k = nullptr;
  std::byte* v = nullptr;  // only if K and V are apart
};

/// A cache as the application describes it.
struct Cache {
  Shape shape{};
  CachePlace place{};
};

/// All formats look alike to the copies: a block consists of chunks, one in each plane, and a plane is an array of
/// chunks by block. If K and V are apart, the second half of the planes is in V.
struct Layout {
  std::size_t blocks = 0;
  std::size_t planes = 0;
  std::size_t chunk = 0;  // bytes
  bool apart = false;

  [[nodiscard]] std::size_t plane_bytes() const { return blocks * chunk; }
  [[nodiscard]] std::size_t block_bytes() const { return planes * chunk; }
  /// The size of K's buffer; if K and V are apart, V's is as large.
  [[nodiscard]] std::size_t buffer_bytes() const { return (apart ? planes / 2 : planes) * plane_bytes(); }

  [[nodiscard]] std::byte* plane(const CachePlace& cache, std::size_t index) const {
    const std::size_t in_k = apart ? planes / 2 : planes;
    return index < in_k ? cache.k + index * plane_bytes() : cache.v + (index - in_k) * plane_bytes();
  }
};

/// Error: an invalid format, a dimension that is not positive, an element size other than 1, 2, 4 or 8, or a size
/// beyond the address space.
Result<Layout> layout_of(const Shape& shape);

/// A valid cache in symmetric memory.
struct CheckedCache {
  Layout layout{};
  CachePlace place{};
  std::uint64_t digest = 0;  // of shape and place: equal on PEs that name the same cache
  bool mapped = true;        // on all PEs: loads and stores reach the caches of a node. The same on all PEs
};
Result<CheckedCache> check_cache(const Cache& cache, const OperatorTeam& team);

/// `pe` gets blocks by puts (remote.hpp, private_puts.hpp), not by stores.
bool takes_puts(const CheckedCache& cache, const OperatorTeam& team, int pe);

/// Where the same cache of `pe` begins; if `pe` takes puts, this PE's own place, by which OperatorTeam names the other.
/// Error: `pe` has no such cache, as with a global variable of another program.
Result<CachePlace> cache_of(const CheckedCache& cache, const OperatorTeam& team, int pe);

}  // namespace shmem::kv
