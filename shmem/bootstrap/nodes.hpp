// SPDX-License-Identifier: Apache-2.0
// The nodes of a job, and the bootstrap of the PEs of one node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/cores/cpu_quota.hpp"

namespace shmem {

/// What a PE knows about where it runs. Fields are zero if the system does not tell.
struct NodeIdentity {
  std::array<char, 48> library{};          // version of libshmem, and the architecture: the same on all nodes
  std::array<char, 40> boot{};             // id of the running kernel: the same in all containers of a machine
  std::uint64_t network = 0;               // the network namespace, which abstract Unix sockets do not leave, or folder
  std::array<std::uint8_t, 8> hardware{};  // address of a network adapter: copies of a virtual machine differ
  std::array<char, 64> given{};            // SHMEM_HOST_ID
  std::array<char, 64> host{};             // for messages
  std::array<std::uint64_t, 16> processors{};  // a bit for each processor that this PE may use; by number modulo 1024
  CpuQuota quota{};                            // the limit by control groups; thousandths 0: no limit
  bool locks_new_memory = false;               // mlockall(MCL_FUTURE)
  bool survives = false;                       // goes on when another PE dies
};
/// `folder`: SHMEM_JOB_DIR, which is made if it does not exist.
NodeIdentity node_identity(const std::string& given = "", const std::string& folder = "");
/// The same for equal ones.
std::uint64_t digest_of(const NodeIdentity& identity);

/// The job's PEs by node. Plain data, empty in a job on one node: then a PE's numbers in the world and on the node are
/// the same.
struct Nodes {
  int count = 1;
  int mine = 0;                    // nodes are numbered in the order of their first PEs
  std::vector<int> node_of{};      // of a PE of the world
  std::vector<int> here{};         // the PEs of this node, ascending
  std::vector<int> number_here{};  // of a PE of the world, among the PEs of its node
  std::vector<std::string> hosts{};
  int neighbours = 0;  // PEs of other nodes on this node's kernel: in other containers, or by SHMEM_HOST_ID
  int processors = 0;  // that they and the PEs of this node together may use

  [[nodiscard]] bool several() const { return count > 1; }
  /// `runnable` processes or threads of this node and the neighbours outnumber the processors that they share.
  [[nodiscard]] bool oversubscribed(int runnable) const { return neighbours > 0 && runnable + neighbours > processors; }
  /// The number in the world of PE `number` of this node.
  [[nodiscard]] int world(int number) const { return several() ? here[static_cast<std::size_t>(number)] : number; }
  /// The number on this node of PE `pe` of the world; -1: it is on another node.
  [[nodiscard]] int number(int pe) const {
    if (!several()) {
      return pe;
    }
    const auto index = static_cast<std::size_t>(pe);
    return node_of[index] == mine ? number_here[index] : -1;
  }
  /// "PEs 0, 1 are on kiwi, PE 2 is on lemon"; limited to the first nodes. REQUIRES: several().
  [[nodiscard]] std::string text() const;
  /// The host of a PE. REQUIRES: several().
  [[nodiscard]] const std::string& host(int pe) const {
    return hosts[static_cast<std::size_t>(node_of[static_cast<std::size_t>(pe)])];
  }
};

struct Whereabouts {
  Nodes nodes;
  int processors = 0;              // that the PEs of this node together may use
  int first_locking = -1;          // the first PE of the world whose memory is locked when it is mapped; -1: none
  int first_without_survive = -1;  // the first PE that does not go on when another one dies; -1: all do
};
/// Collective; an Error, the same on all, if PEs have different versions of libshmem. PEs are on one node if they run
/// on one kernel, in one network namespace, and with the same SHMEM_HOST_ID; the host name does not matter, unless the
/// kernel tells no id. Processors are counted by the PEs' affinity and control groups.
Result<Whereabouts> find_nodes(Bootstrap& bootstrap, const NodeIdentity& mine);

/// The bootstrap of the PEs of one node. Each step is a step of the world, so that all nodes take the same steps.
class NodeBootstrap final : public Bootstrap {
 public:
  NodeBootstrap(std::unique_ptr<Bootstrap> world, Nodes nodes) : world_(std::move(world)), nodes_(std::move(nodes)) {}

  [[nodiscard]] int rank() const override { return nodes_.number(world_->rank()); }
  [[nodiscard]] int size() const override { return static_cast<int>(nodes_.here.size()); }
  [[nodiscard]] Bootstrap& everybody() override { return *world_; }

  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    auto all = world_->allgather(mine);
    if (!all) {
      return all;
    }
    std::vector<std::byte> here(mine.size() * nodes_.here.size());
    for (std::size_t i = 0; i < nodes_.here.size() && !mine.empty(); ++i) {
      std::memcpy(&here[i * mine.size()], &(*all)[static_cast<std::size_t>(nodes_.here[i]) * mine.size()], mine.size());
    }
    return here;
  }
  Result<void> barrier() override { return world_->barrier(); }

  int abort(int status, const std::string& reason) override { return world_->abort(status, reason); }
  void announce_exit(int status, const std::string& reason) override { world_->announce_exit(status, reason); }
  void give_up_start(const std::string& reason) override { world_->give_up_start(reason); }
  [[nodiscard]] std::optional<std::string> aborted() const override { return world_->aborted(); }
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return world_->alarm(); }
  [[nodiscard]] std::string end_of(int rank) const override {
    return world_->end_of(nodes_.here[static_cast<std::size_t>(rank)]);
  }
  Result<void> survive() override { return world_->survive(); }
  void leave() override { world_->leave(); }
  void serve_others() override { world_->serve_others(); }

 private:
  std::unique_ptr<Bootstrap> world_;
  Nodes nodes_;
};

}  // namespace shmem
