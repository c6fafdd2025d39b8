// SPDX-License-Identifier: Apache-2.0
// What the host side of a PE tells its vector cores: a copy in the PE's metadata area, because a core that is not a
// thread of the process sees only that. Every part has a version, so that a core never reads a half-written one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/versioned.hpp"
#include "shmem/layout/metadata.hpp"

namespace shmem {

/// The number of this PE on its node, and the location of symmetric memory in this PE's address space.
struct CoreJob {
  std::int32_t my_pe, n_pes;  // on the node
  std::uint64_t heaps;        // address of PE 0's heap; that of PE i is i * heap_size further
  std::uint64_t heap_size;
  std::uint64_t board;  // address of the Board: the sync pools of all teams
};

/// Symmetric global variables, as this PE addresses them. A program with more ranges than fit here has them on the host
/// side only.
struct CoreGlobals {
  struct Range {
    std::uint64_t begin, size;  // mine
    std::uint64_t first;        // address of PE 0's; that of PE i is i * stride further
  };
  static constexpr std::size_t kMostPes = 4096;

  std::uint64_t count, stride;
  std::array<Range, 64> ranges;
  std::array<std::uint64_t, kMostPes / 64> has_them;  // bit i: PE i runs the same program
};

/// Memory that the program has registered, by slot. What is in later slots, or on PEs beyond CoreGlobals::kMostPes, is
/// known to the host side only.
struct CoreRegistered {
  struct Range {
    std::uint64_t begin, size;  // mine; size 0: none
  };
  static constexpr std::size_t kMost = 64;
  std::array<Range, kMost> ranges;
};
/// The addresses of each PE's, as this PE addresses them; 0: it does not reach them. Written before the range.
using CoreRegisteredPlaces =
    std::array<std::array<std::atomic<std::uint64_t>, CoreGlobals::kMostPes>, CoreRegistered::kMost>;

/// A team as in TeamMap; size 0: none.
struct CoreTeam {
  std::int32_t start, stride, size, me;
};

/// The host's word for each kernel that it launches.
struct CoreLaunch {
  std::uint64_t ffts_config;
};

/// Written by the PE's host thread, read by its cores.
struct CoreState {
  base::Versioned<CoreJob> job;
  base::Versioned<CoreGlobals> globals;
  std::array<base::Versioned<CoreTeam>, kMaxTeams> team;
  base::Versioned<CoreLaunch> launch;
  base::Versioned<CoreRegistered> registered;
  CoreRegisteredPlaces registered_places;

  /// The live team in this slot; size 0 if there is none. -1 becomes a slot that does not exist.
  [[nodiscard]] CoreTeam find(std::size_t slot) const { return slot < team.size() ? team[slot].read() : CoreTeam{}; }
};

static_assert(sizeof(CoreState) <= kMetadataSize - kNotesSize);

/// The address in `pe` of the global variable at `mine`; 0 if `pe` does not have it.
inline std::uint64_t core_translate(const CoreGlobals& globals, std::uint64_t mine, int me, int pe) {
  const auto peer = static_cast<std::size_t>(pe);
  for (std::size_t i = 0; i < globals.count; ++i) {
    const CoreGlobals::Range& range = globals.ranges[i];
    const std::uint64_t offset = mine - range.begin;
    if (offset >= range.size) {
      continue;
    }
    if (peer >= CoreGlobals::kMostPes || (globals.has_them[peer / 64] >> (peer % 64) & 1) == 0) {
      return 0;
    }
    return pe == me ? mine : range.first + peer * globals.stride + offset;
  }
  return 0;
}

/// The same of registered memory.
inline std::uint64_t core_translate_registered(const CoreState& state, std::uint64_t mine, int pe) {
  if (state.registered.version() == 0 || static_cast<std::size_t>(pe) >= CoreGlobals::kMostPes) {
    return 0;
  }
  const CoreRegistered registered = state.registered.read();
  for (std::size_t slot = 0; slot < registered.ranges.size(); ++slot) {
    const std::uint64_t offset = mine - registered.ranges[slot].begin;
    if (offset < registered.ranges[slot].size) {
      // Relaxed: the range was read after it was written, and with acquire.
      const std::uint64_t theirs =
          state.registered_places[slot][static_cast<std::size_t>(pe)].load(std::memory_order_relaxed);
      return theirs != 0 ? theirs + offset : 0;
    }
  }
  return 0;
}

/// The address in the node's `pe` of the symmetric address `mine`; 0 if it is not symmetric, or there is no such PE.
inline std::uint64_t core_translate(const CoreState& state, std::uint64_t mine, int pe) {
  const CoreJob job = state.job.read();
  if (pe < 0 || pe >= job.n_pes) {
    return 0;
  }
  const std::uint64_t offset = mine - (job.heaps + static_cast<std::uint64_t>(job.my_pe) * job.heap_size);
  if (offset < job.heap_size) {
    return job.heaps + static_cast<std::uint64_t>(pe) * job.heap_size + offset;
  }
  const std::uint64_t global = core_translate(state.globals.read(), mine, job.my_pe, pe);
  return global != 0 ? global : core_translate_registered(state, mine, pe);
}

}  // namespace shmem
