// SPDX-License-Identifier: Apache-2.0
// Several PEs played by threads of one process, each with caches, words and an operator of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "shmem/kv/operator.hpp"
#include "tests/unit/kv/played_far.hpp"

namespace kv_test {

using shmem::kv::Cache;
using shmem::kv::Format;
using shmem::kv::Move;
using shmem::kv::MovePlan;
using shmem::kv::Settings;
using shmem::kv::Shape;
using shmem::kv::TablePlan;

/// A pair table, and the block tables of each PE.
struct Blocks {
  std::vector<std::int64_t> source, destination;
};

/// The "symmetric memory" of all PEs is one array; each PE's part has K, V and the operator's words at the same
/// offsets.
class PlayedPes {
 public:
  /// `pes_a_node`: each so many in a row are a node; 0: all are on one.
  PlayedPes(int pes, const Settings& settings, const Shape& shape, int pes_a_node = 0);

  [[nodiscard]] int pes() const { return pes_; }
  /// Of K, and of V where that is apart.
  [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] std::byte* k(int pe) { return memory_.get() + static_cast<std::size_t>(pe) * part_bytes_; }
  [[nodiscard]] std::byte* v(int pe) { return k(pe) + buffer_bytes_; }
  [[nodiscard]] Cache cache(int pe);

  void fill(unsigned seed);
  /// A copy of all that `pe` has, K and then V.
  [[nodiscard]] std::vector<std::byte> caches(int pe);
  [[nodiscard]] std::vector<std::vector<std::byte>> all_caches();

  /// The arguments of one call.
  struct Call {
    Cache cache{};
    const MovePlan* list = nullptr;
    const TablePlan* table = nullptr;  // goes before `list`
  };
  using Change = std::function<void(int pe, Call&)>;

  /// All PEs at once; `change` may spoil the arguments of a PE. Empty texts are successes.
  std::vector<shmem::Error> run(const MovePlan& plan, const Change& change = {});
  std::vector<shmem::Error> run(const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks,
                                const Change& change = {});
  /// One PE alone, in the calling thread.
  shmem::Error run_one(int pe, const Call& call);
  TablePlan table(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks);

  /// Calls that wait for longer fail.
  std::chrono::milliseconds time_limit{60'000};
  /// Called by a PE that comes out of a sync.
  std::function<void(int pe)> after_sync{};
  /// How many PEs are in a sync now.
  [[nodiscard]] int in_sync() {
    const std::lock_guard lock{mutex_};
    return arrived_;
  }
  /// How many syncs there have been.
  [[nodiscard]] std::uint64_t syncs() const { return syncs_; }
  /// Between nodes.
  PlayedTraffic traffic{};

 private:
  struct FreeAligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::vector<shmem::Error> run_all(const std::function<Call(int pe)>& call_of);
  shmem::kv::Site site(int pe);
  std::shared_ptr<PlayedFar> far(int pe);
  shmem::Result<void> sync();
  shmem::Result<PlayedFar::Vote> vote(int pe, std::uint64_t digest, bool willing);

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
  std::vector<Ballot> ballots_;  // of the vote that is under way, or was the last
  std::vector<std::unique_ptr<shmem::kv::Operator>> operators_;
};

}  // namespace kv_test
