// SPDX-License-Identifier: Apache-2.0
// How a team on several nodes is divided: each part synchronises in shared memory, and has a leader.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "shmem/bootstrap/nodes.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// The members of a part are evenly spaced among the PEs of their node, because a SyncView is. So a node's members are
/// one part, or several if they are not evenly spaced: PEs 0, 2, 4, 6 of a job whose PE 3 is on another node, for
/// example. The parts of a team that was shrunk are those of the team before, evenly spaced or not (TeamMap of a list).
class TeamParts {
 public:
  /// What a member's parent team, or the job, says about a PE of the world: members with different places are in
  /// different parts. REQUIRES: PEs with the same place are on one node.
  using PlaceOf = std::function<int(int pe)>;

  TeamParts() = default;
  enum class Spacing { kEven, kAny };
  /// The same on all members.
  TeamParts(const Nodes& nodes, const TeamMap& world, const PlaceOf& place_of, Spacing spacing = Spacing::kEven);

  [[nodiscard]] std::size_t count() const { return members_.size(); }
  /// The members of each part, by their numbers in the team and in this order. Parts are in the order of their first
  /// members.
  [[nodiscard]] const std::vector<std::vector<int>>& members() const { return members_; }
  [[nodiscard]] int part_of(int member) const { return part_of_[static_cast<std::size_t>(member)]; }
  /// A node has several parts.
  [[nodiscard]] bool divide_a_node() const { return divide_a_node_; }

 private:
  std::vector<std::vector<int>> members_;
  std::vector<int> part_of_;
  bool divide_a_node_ = false;
};

/// Members of `world`, by their numbers on their node. REQUIRES: they are on one node, and evenly spaced there.
TeamMap map_on_node(const Nodes& nodes, const TeamMap& world, const std::vector<int>& members);

/// The same for all members, or nothing if there is no such map: some are on another node, or they are not evenly
/// spaced.
std::optional<TeamMap> map_here(const Nodes& nodes, const TeamMap& world);

}  // namespace shmem
