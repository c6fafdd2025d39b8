// SPDX-License-Identifier: Apache-2.0
// The bootstrap of the PEs of one node, among those of all nodes.
#pragma once

#include <cstring>
#include <utility>

#include "shmem/bootstrap/nodes.hpp"

namespace shmem {

/// Each step is one of the world, so that all nodes take the same steps: what one node hears of itself, the others
/// have passed by.
class NodeBootstrap final : public Bootstrap {
 public:
  NodeBootstrap(std::unique_ptr<Bootstrap> world, Nodes nodes) : world_(std::move(world)), nodes_(std::move(nodes)) {}

  [[nodiscard]] int rank() const override { return nodes_.number(world_->rank()); }
  [[nodiscard]] int size() const override { return static_cast<int>(nodes_.here.size()); }
  [[nodiscard]] Bootstrap& everybody() override { return *world_; }

  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    const auto all = world_->allgather(mine);
    if (!all) return all;
    std::vector<std::byte> here(mine.size() * nodes_.here.size());
    for (std::size_t i = 0; i < nodes_.here.size() && !mine.empty(); ++i) {
      std::memcpy(&here[i * mine.size()], &(*all)[static_cast<std::size_t>(nodes_.here[i]) * mine.size()], mine.size());
    }
    return here;
  }
  Result<void> barrier() override { return world_->barrier(); }

  int abort(int status, const std::string& reason) override { return world_->abort(status, reason); }
  [[nodiscard]] std::optional<std::string> aborted() const override { return world_->aborted(); }
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return world_->alarm(); }
  void leave() override { world_->leave(); }

 private:
  std::unique_ptr<Bootstrap> world_;
  Nodes nodes_;
};

}  // namespace shmem
