// SPDX-License-Identifier: Apache-2.0
// Words in each PE's metadata area for calls of kernels: barriers of lists of PEs, barriers by an algorithm that the
// kernel names, and barriers that a program writes itself. All zero at first; the library's other barriers do not use
// them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shmem/layout/core_state.hpp"

namespace shmem {

/// A PE can have barriers of lists with this many others, in a job of that many PEs.
constexpr std::size_t kMostPartners = 16384;
constexpr std::size_t kMostPoolCores = 1024;
constexpr std::size_t kPoolRounds = 10;  // log2 of these cores
constexpr std::size_t kTeamPoolWords = 40;

struct TeamPool {
  std::array<SyncWord, kTeamPoolWords> words;
  SyncWord counter;
};

struct KernelSync {
  /// From PE i, in barriers of lists: their number << 16 | a mark of the list. Written by PE i.
  std::array<SyncWord, kMostPartners> received;
  /// How many of these this PE has waited for. Written by this PE.
  std::array<std::uint64_t, kMostPartners> awaited;

  // For barriers of the program's own and, team_pool, for those of barrier/pool_barrier.hpp.
  std::array<std::array<SyncWord, kPoolRounds>, kMostPoolCores> core_pool;  // [core][round]
  SyncWord core_counter;
  std::array<TeamPool, kMaxTeams> team_pool;
  /// Bit i: a caller has the address of team_pool[i] here. Set by all, cleared by this PE between teams.
  std::array<std::atomic<std::uint64_t>, kMaxTeams / 64> team_pool_used;

  /// The words of a live team, which are cleared before the slot's next team.
  TeamPool& use_team_pool(int slot) {
    const auto index = static_cast<std::size_t>(slot);
    // Relaxed: read by the owner after the members' last synchronisation, when the team is gone.
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    if ((team_pool_used[index / 64].load(std::memory_order_relaxed) & bit) == 0) {
      team_pool_used[index / 64].fetch_or(bit, std::memory_order_relaxed);
    }
    return team_pool[index];
  }

  /// A new team finds its words zero. Unused pages are not touched.
  void clear_team_pool(int slot) {
    const auto index = static_cast<std::size_t>(slot);
    auto& used = team_pool_used[index / 64];
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    // Relaxed, as the words: the members synchronise between this and the first use of the team.
    if ((used.load(std::memory_order_relaxed) & bit) == 0) {
      return;
    }
    used.fetch_and(~bit, std::memory_order_relaxed);
    for (SyncWord& word : team_pool[index].words) {
      word.value.store(0, std::memory_order_relaxed);
    }
    team_pool[index].counter.value.store(0, std::memory_order_relaxed);
  }

  /// After a kernel that failed, whose cores have passed different numbers of barriers.
  void clear_core_pool(int cores) {
    for (int core = 0; core < cores && static_cast<std::size_t>(core) < kMostPoolCores; ++core) {
      for (SyncWord& word : core_pool[static_cast<std::size_t>(core)]) {
        word.value.store(0, std::memory_order_relaxed);
      }
    }
    core_counter.value.store(0, std::memory_order_relaxed);
  }
};

/// After the CoreState.
constexpr std::size_t kKernelSyncOffset = std::size_t{4} << 20;
static_assert(sizeof(CoreState) <= kKernelSyncOffset);
static_assert(kKernelSyncOffset + sizeof(KernelSync) <= kMetadataSize - kNotesSize);

}  // namespace shmem
