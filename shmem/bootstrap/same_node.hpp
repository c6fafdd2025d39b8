// SPDX-License-Identifier: Apache-2.0
// The PEs of a job share memory, so they run on one host.
#pragma once

#include <array>
#include <cstdint>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/cores/cpu_quota.hpp"

namespace shmem {

/// What a PE knows of where it runs. All zero where the system does not tell.
struct NodeIdentity {
  std::array<char, 40> boot{};  // of the running kernel: the same in all containers of a host
  std::uint64_t network = 0;    // the network namespace: Unix sockets without a file do not reach beyond it
  std::array<char, 64> host{};  // for messages
  std::array<std::uint64_t, 16> processors{};  // a bit for each that this PE may use
  CpuQuota quota{};                            // what control groups leave to it; thousandths 0: as much as there is
};
NodeIdentity node_identity();

/// Collective: how many processors the PEs may use, all together; launchers bind each to some, and control groups limit
/// how much of them they get. An Error on all PEs, with names, unless all of them can reach each other's memory.
Result<int> check_same_node(Bootstrap& bootstrap, const NodeIdentity& mine);

}  // namespace shmem
