// SPDX-License-Identifier: Apache-2.0
// Jobs whose PEs behave as if on several nodes, on this machine: no loads and stores between nodes.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

#include "tests/support/job.hpp"

namespace kv_test {

/// False on a machine without UCX, or if libshmem was built without it.
inline bool has_network() {
  if (!KV_WITH_UCX) {
    return false;
  }
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    dlclose(library);
  }
  return library != nullptr;
}

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
