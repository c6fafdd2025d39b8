// SPDX-License-Identifier: Apache-2.0
// Blocks of members on other nodes: finding, listing and releasing them (RemoteMembers), and pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kv/exchange/remote_members.hpp"

namespace shmem::exchange {

/// Pulls of blocks of members on other nodes, of all of them at the same time.
class RemotePulls {
 public:
  /// Null: this member is not connected to other nodes.
  explicit RemotePulls(RemotePeers peers) : peers_(std::move(peers)) {}

  void add(const Block& block, void* destination, std::size_t index);
  /// After the last add().
  void start();
  /// Sets the status of each block that was added, by its index.
  void finish(std::int32_t* statuses);

 private:
  struct OfMember {
    std::vector<Block> blocks{};
    std::vector<void*> destinations{};
    std::vector<std::size_t> indexes{};
    std::vector<std::int32_t> statuses{};
    std::unique_ptr<RemotePull> pull{};
  };

  RemotePeers peers_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, OfMember> members_;  // by seat: RemotePeer::take_turn
};

}  // namespace shmem::exchange
