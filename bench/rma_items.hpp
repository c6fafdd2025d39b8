// SPDX-License-Identifier: Apache-2.0
// What is measured of OpenSHMEM on a node, and what stands beside it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/conductor.hpp"

namespace bench {

/// One call, and something simpler. All PEs call either with the same count; process 0 gets the nanoseconds of one.
struct Item {
  std::string name;
  std::function<double(std::uint32_t count)> figure;
  std::function<double(std::uint32_t count)> base;
  std::uint32_t most = 100'000;  // calls in one go
};

/// What PE 0 does with the memory of PE 1.
std::vector<Item> one_sided_items(Player& player);
/// What all PEs do together; beside each, a barrier of the same library.
std::vector<Item> collective_items();
/// Collectives of many sizes, each called as in shmem::kCollectiveNames and its bytes as shmem::CollectiveLimits count
/// them.
std::vector<Item> tuning_items();

}  // namespace bench
