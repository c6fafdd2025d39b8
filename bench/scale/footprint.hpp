// SPDX-License-Identifier: Apache-2.0
// What a PE costs its host in memory, and all of them at start-up, as their number grows.
#pragma once

#include "bench/scale/parameters.hpp"

namespace scale {

/// Bytes.
struct Footprint {
  double own = 0;             // of each PE, heap left out: measured
  double network = 0;         // of each PE for one worker, where there are other nodes
  double team = 0;            // on the board of the node, for each PE and team: this much is shared
  double addresses = 0;       // to reach all PEs of other nodes, if it is kept once a node: a PE's share
  double addresses_each = 0;  // and if each PE keeps it
  double received = 0;        // by each PE in shmem_init
  double server = 0;          // sent by the one PE that serves a job by unique id
};
Footprint footprint(const Parameters& parameters, double pes, double pes_per_node);

}  // namespace scale
