// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/cache.hpp"

#include <fmt/format.h>

#include <functional>

#include "base/size_text.hpp"
#include "kv/operator/plan.hpp"

namespace shmem::kv {
namespace {

std::string describe(const Shape& shape) {
  return fmt::format("{} of {} of {} x {} x {} elements", base::count(shape.layers, "layer"),
                     base::count(shape.blocks, "block"), base::count(shape.heads, "head"), shape.page, shape.head_dim);
}

/// K and V are side by side in a chunk, or in separate planes.
struct Division {
  std::size_t planes, parts_in_chunk;
};

Division division_of(Format format, std::size_t layers) {
  switch (format) {
    case Format::kApart:
    case Format::kByLayer:
      return {2 * layers, 1};
    case Format::kInterleaved:
      return {layers, 2};
    case Format::kByBlock:
      return {1, 2 * layers};
    case Format::kLatent:
      break;
  }
  return {layers, 1};
}

}  // namespace

Result<Layout> layout_of(const Shape& shape) {
  if (static_cast<int>(shape.format) < 0 || static_cast<int>(shape.format) >= kFormats) {
    return invalid(fmt::format("format {} is invalid (SHMEMX_KV_APART, ...)", static_cast<int>(shape.format)));
  }
  if (const auto size = shape.element_size; size != 1 && size != 2 && size != 4 && size != 8) {
    return invalid(fmt::format("element size {} is not 1, 2, 4 or 8", size));
  }
  std::size_t bytes = 2;  // K and V
  for (const std::int64_t dimension :
       {shape.heads, shape.page, shape.head_dim, shape.element_size, shape.layers, shape.blocks}) {
    std::size_t product = 0;
    if (dimension <= 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(dimension), &product) ||
        product > static_cast<std::size_t>(PTRDIFF_MAX)) {
      return invalid(fmt::format("a cache of {} is invalid: dimensions are positive, and the whole fits into memory",
                                 describe(shape)));
    }
    bytes = product;
  }
  const std::size_t part = bytes / 2 / static_cast<std::size_t>(shape.layers) / static_cast<std::size_t>(shape.blocks);
  const Division division = division_of(shape.format, static_cast<std::size_t>(shape.layers));
  return Layout{.blocks = static_cast<std::size_t>(shape.blocks),
                .planes = division.planes,
                .chunk = division.parts_in_chunk * part,
                .apart = shape.format == Format::kApart};
}

namespace {

Result<void> check_v(const Cache& cache) {
  const bool apart = cache.shape.format == Format::kApart;
  if (apart && cache.place.v == nullptr) {
    return invalid("the cache's v is NULL");
  }
  if (!apart && cache.place.v != nullptr) {
    return invalid("the cache's v is not NULL, but only with SHMEMX_KV_APART K and V have a buffer each");
  }
  return {};
}

Result<void> check_symmetric(const std::byte* mine, std::size_t bytes, const char* name, const OperatorTeam& team) {
  if (!team.is_symmetric(mine, bytes)) {
    return invalid(
        fmt::format("the cache's {} of {} bytes is not in symmetric memory, or not in one piece (allocate it "
                    "with shmem_malloc, or register it with shmemx_memory_register)",
                    name, bytes));
  }
  return {};
}

bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) {
  const std::less<> before;
  return before(a, b + bytes) && before(b, a + bytes);
}

Error no_cache(int pe) {
  return invalid(fmt::format(
      "PE {} has no such cache: symmetric global variables are those of one program, and a PE that has taken the place "
      "of another one has no registered memory (call shmemx_memory_register again)",
      pe));
}

std::uint64_t digest_of(const Cache& cache, const OperatorTeam& team) {
  const auto offset = [&](const void* at) { return at == nullptr ? -1 : static_cast<std::int64_t>(team.offset(at)); };
  const Shape& shape = cache.shape;
  Digest digest;
  for (const std::int64_t number :
       {static_cast<std::int64_t>(shape.format), shape.layers, shape.blocks, shape.heads, shape.page, shape.head_dim,
        shape.element_size, offset(cache.place.k), offset(cache.place.v)}) {
    digest.add(number);
  }
  return digest.value();
}

}  // namespace

Result<CheckedCache> check_cache(const Cache& cache, const OperatorTeam& team) {
  if (cache.place.k == nullptr) {
    return invalid("the cache's k is NULL");
  }
  const auto layout = layout_of(cache.shape);
  if (!layout) {
    return layout.error();
  }
  if (auto ok = check_v(cache); !ok) {
    return ok.error();
  }
  const std::size_t bytes = layout->buffer_bytes();
  auto ok = check_symmetric(cache.place.k, bytes, "k", team);
  if (ok && layout->apart) {
    ok = check_symmetric(cache.place.v, bytes, "v", team);
  }
  if (!ok) {
    return ok.error();
  }
  if (layout->apart && overlap(cache.place.k, cache.place.v, bytes)) {
    return invalid(fmt::format("the cache's k and v, {} bytes each, overlap", bytes));
  }
  return CheckedCache{.layout = *layout,
                      .place = cache.place,
                      .digest = digest_of(cache, team),
                      .mapped = team.is_mapped(cache.place.k) && (!layout->apart || team.is_mapped(cache.place.v))};
}

bool takes_puts(const CheckedCache& cache, const OperatorTeam& team, int pe) {
  return team.is_remote(pe) || (!cache.mapped && (team.is_private(cache.place.k, pe) ||
                                                  (cache.layout.apart && team.is_private(cache.place.v, pe))));
}

Result<CachePlace> cache_of(const CheckedCache& cache, const OperatorTeam& team, int pe) {
  if (team.is_remote(pe)) {
    const std::size_t bytes = cache.layout.buffer_bytes();
    const bool exists =
        team.has_remote(cache.place.k, bytes, pe) && (!cache.layout.apart || team.has_remote(cache.place.v, bytes, pe));
    return exists ? Result<CachePlace>(cache.place) : no_cache(pe);
  }
  if (takes_puts(cache, team, pe)) {
    return cache.place;
  }
  const CachePlace place{team.translate(cache.place.k, pe),
                         cache.layout.apart ? team.translate(cache.place.v, pe) : nullptr};
  if (place.k == nullptr || (cache.layout.apart && place.v == nullptr)) {
    return no_cache(pe);
  }
  // Copies find the planes by their distances on this PE.
  if (cache.layout.apart && place.v - place.k != cache.place.v - cache.place.k) {
    return invalid(
        fmt::format("the distance of k and v on PE {} is not that of this PE: use memory of shmem_malloc instead of "
                    "global variables, and register k and v together, as one memory",
                    pe));
  }
  return place;
}

}  // namespace shmem::kv
