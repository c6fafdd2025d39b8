// SPDX-License-Identifier: Apache-2.0
// The network of a job on several nodes, from connecting to disconnecting.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "shmem/layout/job.hpp"
#include "shmem/layout/sync_view.hpp"
#include "shmem/net/network.hpp"
#include "shmem/net/process_group.hpp"

namespace shmem {

/// Empty in a job on one node. The Job outlives it and refers to what it opens.
class JobNetwork {
 public:
  explicit JobNetwork(Job& job) : job_(job) {}
  JobNetwork(const JobNetwork&) = delete;
  JobNetwork& operator=(const JobNetwork&) = delete;
  ~JobNetwork();

  /// Collective: connects to the PEs on other nodes. After the global variables have been moved, because UCX would
  /// interfere with that. `survives`: the job goes on when a PE dies.
  Result<void> open(bool survives);
  /// Collective, the last call. Without `all`, because PEs have died, no PE waits for another one here.
  Result<void> disconnect(bool all);
  /// No thread of the library uses the network any more.
  void stop_progress() { progress_ = {}; }

  /// The group by which the PEs of an active set on several nodes synchronise, for calls with this pSync. Thread-safe.
  [[nodiscard]] ProcessGroup& group_of(const TeamMap& set, const long* psync) const;

  /// Collective: no call uses a pSync in `block` any more.
  void forget_groups(std::span<const std::byte> block);

  /// If a PE on another node was lost because it ended the job: its reason, to be added to this PE's message.
  /// `by_leader`: it may have been lost by the leader of this node.
  [[nodiscard]] std::string reason_of_loss(bool by_leader = false) const;

 private:
  [[nodiscard]] NetworkSettings settings(bool survives);
  Result<void> start_progress();

  struct SetOfPes {
    int start, stride, size;
    std::uintptr_t psync;
    auto operator<=>(const SetOfPes&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  Job& job_;
  std::unique_ptr<RemoteBoard> board_;  // network_ reads it
  std::unique_ptr<Network> network_;
  bool disconnected_ = false;
  mutable std::mutex groups_mutex_;
  mutable std::map<SetOfPes, ProcessGroup> groups_;
  std::jthread progress_;  // SHMEM_PROGRESS_THREAD, and while disconnecting; ends before the network
};

}  // namespace shmem
