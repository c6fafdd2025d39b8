// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/reference_caches.hpp"

#include <algorithm>

namespace kv_program {
namespace {

using shmem::Result;
using shmem::kv::PairPlan;
using Kind = ReferenceFolder::Kind;

constexpr Cache kCaches[] = {Cache::kK, Cache::kV};
/// The whole of a cache of one layer.
std::span<std::byte> all_of(const Caches& caches, Cache cache) {
  return {caches.bytes({0, cache}, 0).data(), static_cast<std::size_t>(caches.shape().bytes_of_object())};
}

}  // namespace

Result<void> read_inputs(const ReferenceFolder& folder, const Caches& caches) {
  for (const Cache cache : kCaches) {
    if (auto ok = folder.read_cache(cache, Kind::kInput, shmem_my_pe(), all_of(caches, cache)); !ok) {
      return ok;
    }
  }
  return {};
}

Result<void> write_caches(const ReferenceFolder& folder, Kind kind, const Caches& caches) {
  for (const Cache cache : kCaches) {
    if (auto ok = folder.write_cache(cache, kind, shmem_my_pe(), all_of(caches, cache)); !ok) {
      return ok;
    }
  }
  return {};
}

Result<void> compare_with_golden(const ReferenceFolder& folder, const Caches& caches, const PairPlan& plan) {
  const int pe = shmem_my_pe();
  const std::int64_t block_bytes = caches.shape().bytes_of_part();
  const bool has_golden = folder.has_golden();
  for (const Cache cache : kCaches) {
    const auto found = all_of(caches, cache);
    std::vector<std::byte> right(found.size());
    auto ok = has_golden ? folder.read_cache(cache, Kind::kGolden, pe, right)
                         : folder.make_golden(cache, pe, plan, block_bytes, right);
    if (!ok) {
      return ok;
    }
    const auto at = std::mismatch(right.begin(), right.end(), found.begin()).first - right.begin();
    if (at != static_cast<std::ptrdiff_t>(right.size())) {
      return shmem::fail(std::errc::bad_message,
                         "byte " + std::to_string(at % block_bytes) + " of block " + std::to_string(at / block_bytes) +
                             " of the " + (cache == Cache::kK ? "K" : "V") + " cache of PE " + std::to_string(pe) +
                             " is not that of " +
                             (has_golden ? folder.cache_file(cache, Kind::kGolden, pe) : "inputs and tables"));
    }
  }
  return {};
}

Result<void> write_golden(const ReferenceFolder& folder, const Shape& shape, const PairPlan& plan) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.bytes_of_object()));
  for (const Cache cache : kCaches) {
    auto ok = folder.make_golden(cache, shmem_my_pe(), plan, shape.bytes_of_part(), bytes);
    if (ok) {
      ok = folder.write_cache(cache, Kind::kGolden, shmem_my_pe(), bytes);
    }
    if (!ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace kv_program
