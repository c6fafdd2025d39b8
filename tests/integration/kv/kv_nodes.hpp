// SPDX-License-Identifier: Apache-2.0
// Jobs whose PEs behave as if on several nodes, on this machine: no loads and stores between nodes.
#pragma once

#include <string>
#include <vector>

#include "tests/support/job.hpp"

namespace kv_test {

using test_support::has_network;

/// A command for oshrun that runs `command` on nodes of `pes_a_node` consecutive PEs each.
inline std::vector<std::string> on_nodes(int pes_a_node, const std::vector<std::string>& command) {
  std::vector<std::string> line{
      "sh", "-c",
      "SHMEM_HOST_ID=node$((OSHRUN_RANK / " + std::to_string(pes_a_node) + ")); export SHMEM_HOST_ID; exec \"$@\"",
      "node"};
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

}  // namespace kv_test
