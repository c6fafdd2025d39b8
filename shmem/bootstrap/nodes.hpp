// SPDX-License-Identifier: Apache-2.0
// Which PEs share a node, and so memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/cores/cpu_quota.hpp"

namespace shmem {

/// What a PE knows of where it runs. All zero where the system does not tell.
struct NodeIdentity {
  std::array<char, 48> library{};  // version of libshmem, and the architecture: the same on all nodes
  std::array<char, 40> boot{};     // of the running kernel: the same in all containers of a host
  std::uint64_t network = 0;       // the network namespace: Unix sockets without a file do not reach beyond it
  std::array<char, 64> given{};    // SHMEM_HOST_ID
  std::array<char, 64> host{};     // for messages
  std::array<std::uint64_t, 16> processors{};  // a bit for each that this PE may use
  CpuQuota quota{};                            // what control groups leave to it; thousandths 0: as much as there is
};
NodeIdentity node_identity(const std::string& given = "");

/// The job's PEs by node. Plain data, empty in a job on one node: then the two kinds of numbers are the same.
struct Nodes {
  int count = 1;
  int mine = 0;                    // nodes are numbered in the order of their first PEs
  std::vector<int> node_of{};      // of a PE of the world
  std::vector<int> here{};         // the PEs of this node, ascending
  std::vector<int> number_here{};  // of a PE of the world among those of its node
  std::vector<std::string> hosts{};
  int neighbours = 0;  // PEs of other nodes that run on this one's kernel: in other containers, or by SHMEM_HOST_ID
  int processors = 0;  // that they and the PEs of this node may use, all together

  [[nodiscard]] bool several() const { return count > 1; }
  /// So many processes or threads of this node, and the neighbours, outnumber the processors that they share.
  [[nodiscard]] bool crowd(int runnable) const { return neighbours > 0 && runnable + neighbours > processors; }
  /// PE `number` of this node, as the world numbers it.
  [[nodiscard]] int world(int number) const { return several() ? here[static_cast<std::size_t>(number)] : number; }
  /// The other way round; -1: it is on another node.
  [[nodiscard]] int number(int pe) const {
    if (!several()) return pe;
    const auto index = static_cast<std::size_t>(pe);
    return node_of[index] == mine ? number_here[index] : -1;
  }
  /// "PEs 0, 1 are on kiwi, PE 2 is on lemon"; of the first nodes, if there are many. REQUIRES: several().
  [[nodiscard]] std::string text() const;
  /// The host of a PE. REQUIRES: several().
  [[nodiscard]] const std::string& host(int pe) const {
    return hosts[static_cast<std::size_t>(node_of[static_cast<std::size_t>(pe)])];
  }
};

struct Whereabouts {
  Nodes nodes;
  int processors;  // that the PEs of this node may use, all together
};
/// Collective; an Error, the same on all, if there are two versions of libshmem. Launchers bind each PE to some
/// processors, and control groups limit how much of them they get. PEs are on one node if they run on one kernel, in
/// one network namespace, and were given the same SHMEM_HOST_ID: never by the name of the host.
Result<Whereabouts> find_nodes(Bootstrap& bootstrap, const NodeIdentity& mine);

}  // namespace shmem
