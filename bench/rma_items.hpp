// SPDX-License-Identifier: Apache-2.0
// What is measured of OpenSHMEM on a node, and what stands beside it.
#pragma once

#include <vector>

#include "bench/item.hpp"

namespace bench {

/// What PE 0 does with the memory of PE 1.
std::vector<Item> one_sided_items(Player& player);
/// What all PEs do together; beside each, a barrier of the same library.
std::vector<Item> collective_items();
/// Collectives of many sizes, each called as in shmem::kCollectiveNames and its bytes as shmem::CollectiveLimits count
/// them.
std::vector<Item> tuning_items();

}  // namespace bench
