// SPDX-License-Identifier: Apache-2.0
// Which members of a team share a cache or a socket, from what their PEs have published.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shmem/cores/processors.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// Runs of consecutive members that share a cache, and of those that share a socket: for each kind the first member of
/// each run, in ascending order, and at the end the number of members. A run of a socket consists of whole runs of
/// caches. One run of each kind if the location of any member is unknown, or if neighbours seldom share anything,
/// because PEs are bound to the caches in turn. Constant; the same on all members.
class NeighbourRuns {
 public:
  NeighbourRuns() = default;
  /// So many members, of whom nothing is known.
  explicit NeighbourRuns(int members) : caches_{0, members}, sockets_{0, members} {}
  /// By member.
  explicit NeighbourRuns(std::span<const CpuLocation> members);
  /// Of the members on this node.
  static NeighbourRuns of_team(const Job& job, const TeamMap& map);

  [[nodiscard]] std::span<const int> caches() const { return caches_; }
  [[nodiscard]] std::span<const int> sockets() const { return sockets_; }
  /// There is more than one run.
  [[nodiscard]] bool several() const { return caches_.size() > 2; }
  /// "socket 0: PEs 0-7, 8-15; socket 1: PEs 16-23", by cache; limited to the first caches. By the members' numbers.
  [[nodiscard]] std::string text() const;
  /// The index of the run that contains a member.
  static std::size_t run_of(std::span<const int> runs, int member);

 private:
  std::vector<int> caches_, sockets_;
};

}  // namespace shmem
