// SPDX-License-Identifier: Apache-2.0
// What an operator knows of the job, and a cache as the application describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "shmem/cores/core_group.hpp"
#include "shmem/kv/far.hpp"
#include "shmem/kv/layout.hpp"

namespace shmem::kv {

/// PEs by their number in the operator's team. Outlived by what its functions refer to.
struct Site {
  int me = 0;
  int pes = 1;
  /// The same object in the symmetric memory of `pe`; nullptr if `mine` is not in this PE's, or `pe` on another node.
  std::function<std::byte*(const void* mine, int pe)> translate{};
  /// So many bytes there are one allocation of the symmetric heap, or global variables.
  std::function<bool(const std::byte* mine, std::size_t bytes)> is_symmetric{};
  /// A number for where symmetric memory is, the same on all PEs.
  std::function<std::uint64_t(const void* mine)> offset{};
  /// The Check of a call that waits for `partner`; begins its time limit.
  std::function<CoreGroup::Check(int partner)> watch{};
  /// Collective: returns when all PEs of the team have called it.
  std::function<Result<void>()> sync{};
  /// Of a job that was ended: why.
  std::function<std::string()> why_ended{};
  /// That all PEs of this node may use together.
  int processors = std::numeric_limits<int>::max();
  /// How many of the PEs are on this node.
  int pes_here = std::numeric_limits<int>::max();
  /// None where all are.
  std::shared_ptr<Far> far{};

  [[nodiscard]] bool is_far(int pe) const { return far != nullptr && far->is_far(pe); }
};

struct Cache {
  Shape shape{};
  CachePlace place{};
};

/// A cache that can be, in symmetric memory.
struct SoundCache {
  Layout layout;
  CachePlace place;
  std::uint64_t digest;  // of shape and place: the same on PEs that mean the same cache
};

/// Error: what is wrong with it.
Result<SoundCache> check_cache(const Cache& cache, const Site& site);

/// The same cache of `pe`; this PE's own if `pe` is on another node, as Far has it. Error: `pe` has none there, as a
/// global variable of another program.
Result<CachePlace> cache_of(const SoundCache& cache, const Site& site, int pe);

/// For people, of an error that another PE has told.
std::string message(std::errc error);

}  // namespace shmem::kv
