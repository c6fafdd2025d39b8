// SPDX-License-Identifier: Apache-2.0
// A job on several nodes whose PEs are threads of the test: the PEs of a node share memory, and nodes reach each other
// by messages.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/shmem/thread_job.hpp"
#include "tests/unit/shmem/thread_network.hpp"

namespace shmem_test {

/// What a PE of node `mine` knows. Nodes are numbered in the order of their first PEs.
inline shmem::Nodes nodes_of(const std::vector<int>& node_of, int mine) {
  shmem::Nodes nodes;
  nodes.count = *std::max_element(node_of.begin(), node_of.end()) + 1;
  nodes.mine = mine;
  nodes.node_of = node_of;
  std::vector<int> sizes(static_cast<std::size_t>(nodes.count));
  for (std::size_t pe = 0; pe < node_of.size(); ++pe) {
    nodes.number_here.push_back(sizes[static_cast<std::size_t>(node_of[pe])]++);
    if (node_of[pe] == mine) {
      nodes.here.push_back(static_cast<int>(pe));
    }
  }
  for (int node = 0; node < nodes.count; ++node) {
    nodes.hosts.push_back("node" + std::to_string(node));
  }
  return nodes;
}

/// Runs `body` once per PE, as run_job(). PE i is on node node_of[i].
inline void run_nodes(const std::vector<int>& node_of, const std::function<void(shmem::Job&)>& body) {
  Wires wires;
  std::vector<std::jthread> nodes;
  for (int node = 0; node <= *std::max_element(node_of.begin(), node_of.end()); ++node) {
    nodes.emplace_back([&, node] {
      const auto size = static_cast<int>(std::count(node_of.begin(), node_of.end(), node));
      run_job(size, [&](shmem::Job& job) {
        job.nodes = nodes_of(node_of, node);
        ThreadNetwork network(wires, job.world_me(), std::chrono::seconds{20});
        job.network = &network;
        body(job);
      });
    });
  }
}

}  // namespace shmem_test
