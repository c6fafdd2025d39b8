// SPDX-License-Identifier: Apache-2.0
// The nodes of a job: -H, --hostfile, and which PEs run on each.
#pragma once

#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem::launcher {

/// A node as the user names it.
struct NodeSlots {
  std::string host;
  int slots = 1;  // the PEs that it takes
};

/// A node and its PEs, whose numbers are consecutive.
struct NodePes {
  std::string host;
  int first = 0;
  int pes = 0;
};

/// "HOST[:N],...". A host that is named again gets the sum.
Result<std::vector<NodeSlots>> parse_hosts(const std::string& text);
/// A line for each node, "HOST", "HOST:N" or "HOST slots=N"; "#" begins a comment. An Error names file and line.
Result<std::vector<NodeSlots>> read_host_file(const std::string& file);

/// How the PEs of a job are spread over the nodes: in this order, each up to its slots. `per_node` (0: not given)
/// replaces the slots of all nodes. With `oversubscribe` the PEs that are left go to the nodes in turn.
Result<std::vector<NodePes>> spread(const std::vector<NodeSlots>& nodes, int pes, int per_node, bool oversubscribe);

/// All slots.
int slots_of(const std::vector<NodeSlots>& nodes, int per_node);

/// Whether it is a name of this machine.
bool is_this_machine(const std::string& host);

}  // namespace shmem::launcher
