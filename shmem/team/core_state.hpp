// SPDX-License-Identifier: Apache-2.0
// What the host side of a PE tells its vector cores: a copy in the PE's metadata area, because a core that is not a
// thread of the process sees no more of it. Every part has a version, so that a core never reads a half-written one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "shmem/memory/versioned.hpp"
#include "shmem/team/metadata.hpp"

namespace shmem {

/// Who this PE is and where symmetric memory is, as this PE addresses it.
struct CoreJob {
  std::int32_t my_pe, n_pes;
  std::uint64_t heaps;  // address of PE 0's heap; that of PE i is i * heap_size further
  std::uint64_t heap_size;
  std::uint64_t board;  // address of the Board: the sync pools of all teams
};

/// A team as in TeamMap; size 0: there is none.
struct CoreTeam {
  std::int32_t start, stride, size, me;
};

/// Written by the PE's host thread, read by its cores.
struct CoreState {
  Versioned<CoreJob> job;
  std::array<Versioned<CoreTeam>, kMaxTeams> team;

  /// The live team of this handle; size 0 if there is none.
  [[nodiscard]] CoreTeam find(int handle) const {
    return handle >= 0 && handle < kMaxTeams ? team[static_cast<std::size_t>(handle)].read() : CoreTeam{};
  }
};

static_assert(sizeof(CoreState) <= kMetadataSize);

/// `mine`, an address in this PE's heap, as `pe` has it; 0 if it is not one, or there is no such PE.
inline std::uint64_t core_translate(const CoreJob& job, std::uint64_t mine, int pe) {
  const std::uint64_t offset = mine - (job.heaps + static_cast<std::uint64_t>(job.my_pe) * job.heap_size);
  if (offset >= job.heap_size || pe < 0 || pe >= job.n_pes) return 0;
  return job.heaps + static_cast<std::uint64_t>(pe) * job.heap_size + offset;
}

}  // namespace shmem
