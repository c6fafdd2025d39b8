// SPDX-License-Identifier: Apache-2.0
// Several PEs simulated by threads of one process, each with caches, words and an operator of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "kv/operator/operator.hpp"
#include "tests/unit/kv/played_team.hpp"

namespace kv_test {

using shmem::kv::Cache;
using shmem::kv::Format;
using shmem::kv::Move;
using shmem::kv::MovePlan;
using shmem::kv::OperatorSettings;
using shmem::kv::PairPlan;
using shmem::kv::Shape;

/// The block tables of one PE.
struct Blocks {
  std::vector<std::int64_t> source, destination;
};

/// The "symmetric memory" of all PEs is one array. In it, the part of each PE has K, V and the operator's words at the
/// same offsets.
class PlayedPes {
 public:
  /// `pes_a_node`: how many consecutive PEs are on each node; 0: all PEs are on one node.
  PlayedPes(int pes, const OperatorSettings& settings, const Shape& shape, int pes_a_node = 0);

  [[nodiscard]] int pes() const { return pes_; }
  [[nodiscard]] int pes_a_node() const { return pes_a_node_; }
  /// The bytes of a PE's symmetric memory.
  [[nodiscard]] std::size_t part_bytes() const { return part_bytes_; }
  /// The bytes of K; V's buffer is as large.
  [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] std::byte* k(int pe) { return memory_.get() + static_cast<std::size_t>(pe) * part_bytes_; }
  [[nodiscard]] std::byte* v(int pe) { return k(pe) + buffer_bytes_; }
  [[nodiscard]] Cache cache(int pe);

  void fill(unsigned seed);
  /// A copy of the caches of `pe`, K and then V.
  [[nodiscard]] std::vector<std::byte> caches(int pe);
  [[nodiscard]] std::vector<std::vector<std::byte>> all_caches();

  /// The arguments of one call.
  struct Call {
    Cache cache{};
    const MovePlan* list = nullptr;
    const PairPlan* table = nullptr;  // used instead of `list`
  };
  using Change = std::function<void(int pe, Call&)>;

  /// Runs a call on all PEs at once. `change` may change the arguments of a PE. An empty text is a success.
  std::vector<shmem::Error> run(const MovePlan& plan, const Change& change = {});
  std::vector<shmem::Error> run(const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks,
                                const Change& change = {});
  /// Runs a call on one PE alone, in the calling thread.
  shmem::Error run_one(int pe, const Call& call);
  PairPlan table(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks);

  /// Calls that wait longer fail.
  std::chrono::milliseconds time_limit{60'000};
  /// If not empty, the job was ended: calls that wait fail.
  std::string why_ended{};
  /// Called by a PE after a sync.
  std::function<void(int pe)> after_sync{};
  /// The number of PEs that are in a sync now.
  [[nodiscard]] int in_sync() {
    const std::lock_guard lock{mutex_};
    return arrived_;
  }
  /// The number of syncs so far.
  [[nodiscard]] std::uint64_t syncs() const { return syncs_; }
  /// The traffic between nodes.
  PlayedTraffic traffic{};
  /// PEs whose caches are private memory, and what happens to copies into them.
  PlayedPrivate private_caches{};

  // For PlayedTeam.
  shmem::Result<void> sync();
  shmem::Result<PlayedTeam::Vote> vote(int pe, std::uint64_t digest, bool willing);

 private:
  struct FreeAligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::vector<shmem::Error> run_all(const std::function<Call(int pe)>& call_of);
  int pes_;
  int pes_a_node_;
  Shape shape_;
  std::size_t buffer_bytes_, part_bytes_;
  std::unique_ptr<std::byte[], FreeAligned> memory_;
  std::mutex mutex_;
  std::condition_variable met_;
  int arrived_ = 0;
  std::uint64_t syncs_ = 0;
  struct Ballot {
    std::uint64_t digest;
    bool willing;
  };
  std::vector<Ballot> ballots_;  // of the current or the last vote
  std::vector<std::unique_ptr<shmem::kv::Operator>> operators_;
};

}  // namespace kv_test
