// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/site.hpp"

#include <functional>
#include <string>

#include "shmem/kv/digest.hpp"

namespace shmem::kv {
namespace {

tl::unexpected<Error> invalid(std::string what) {
  return fail(std::errc::invalid_argument, std::move(what));
}

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

Result<void> check_symmetric(const std::byte* mine, std::size_t bytes, const char* name, const Site& site) {
  if (!site.is_symmetric(mine, bytes)) {
    return invalid(std::string("the cache's ") + name + " of " + std::to_string(bytes) +
                   " bytes is not in symmetric memory, or not in one piece (allocate it with shmem_malloc)");
  }
  return {};
}

bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) {
  const std::less<> before;
  return before(a, b + bytes) && before(b, a + bytes);
}

tl::unexpected<Error> no_cache(int pe) {
  return invalid("PE " + std::to_string(pe) +
                 " has no such cache: symmetric global variables are those of one program");
}

std::uint64_t digest_of(const Cache& cache, const Site& site) {
  const auto offset = [&](const void* at) { return at == nullptr ? -1 : static_cast<std::int64_t>(site.offset(at)); };
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

Result<SoundCache> check_cache(const Cache& cache, const Site& site) {
  if (cache.place.k == nullptr) {
    return invalid("the cache's k is NULL");
  }
  const auto layout = layout_of(cache.shape);
  if (!layout) {
    return tl::make_unexpected(layout.error());
  }
  if (auto ok = check_v(cache); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const std::size_t bytes = layout->buffer_bytes();
  auto ok = check_symmetric(cache.place.k, bytes, "k", site);
  if (ok && layout->apart) {
    ok = check_symmetric(cache.place.v, bytes, "v", site);
  }
  if (!ok) {
    return tl::make_unexpected(ok.error());
  }
  if (layout->apart && overlap(cache.place.k, cache.place.v, bytes)) {
    return invalid("the cache's k and v, " + std::to_string(bytes) + " bytes each, overlap");
  }
  return SoundCache{*layout, cache.place, digest_of(cache, site)};
}

Result<CachePlace> cache_of(const SoundCache& cache, const Site& site, int pe) {
  if (site.is_far(pe)) {
    const std::size_t bytes = cache.layout.buffer_bytes();
    const bool there =
        site.far->has(cache.place.k, bytes, pe) && (!cache.layout.apart || site.far->has(cache.place.v, bytes, pe));
    return there ? Result<CachePlace>(cache.place) : no_cache(pe);
  }
  const CachePlace place{site.translate(cache.place.k, pe),
                         cache.layout.apart ? site.translate(cache.place.v, pe) : nullptr};
  if (place.k == nullptr || (cache.layout.apart && place.v == nullptr)) {
    return no_cache(pe);
  }
  // Copies go from plane to plane by the distances that they have here.
  if (cache.layout.apart && place.v - place.k != cache.place.v - cache.place.k) {
    return invalid("k and v are not as far apart on PE " + std::to_string(pe) +
                   " as here: global variables may be, memory of shmem_malloc is not");
  }
  return place;
}

std::string message(std::errc error) {
  switch (error) {
    case std::errc::timed_out:
      return "it did not come in time (SHMEM_BARRIER_TIMEOUT)";
    case std::errc::owner_dead:
      return "its process has died";
    case std::errc::operation_canceled:
      return "the job was ended";
    default:
      return std::make_error_code(error).message();
  }
}

}  // namespace shmem::kv
