// SPDX-License-Identifier: Apache-2.0
// What two implementations of OpenSHMEM have differently: collectives are of teams, or, in one that is older than
// version 1.5 (BENCH_OPENMPI_SHMEM), of active sets.
#pragma once

#include <shmem.h>

#include <array>
#include <cstdint>

namespace bench {

/// Calls on all PEs, of words. In the older version a call has a pSync of its own until all have returned: kTurns calls
/// later none of those that bench makes is still under way.
class Collectives {
 public:
#ifdef BENCH_OPENMPI_SHMEM
  static constexpr std::size_t kTurns = 32;
  explicit Collectives(std::size_t words)
      : sync_(static_cast<Sync*>(shmem_malloc(sizeof(Sync)))),
        work_(static_cast<long*>(shmem_malloc((words / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(long)))) {
    for (auto& turn : *sync_) {
      turn.fill(_SHMEM_SYNC_VALUE);
    }
    shmem_barrier_all();
  }
  void broadcast(long* to, const long* from, std::size_t words, int root) {
    shmem_broadcast64(to, from, words, root, 0, 0, shmem_n_pes(), sync());
  }
  void collect(long* to, const long* from, std::size_t words) {
    shmem_collect64(to, from, words, 0, 0, shmem_n_pes(), sync());
  }
  void fcollect(long* to, const long* from, std::size_t words) {
    shmem_fcollect64(to, from, words, 0, 0, shmem_n_pes(), sync());
  }
  void alltoall(long* to, const long* from, std::size_t words) {
    shmem_alltoall64(to, from, words, 0, 0, shmem_n_pes(), sync());
  }
  void sum(long* to, long* from, std::size_t words) {
    shmem_long_sum_to_all(to, from, static_cast<int>(words), 0, 0, shmem_n_pes(), work_, sync());
  }

 private:
  using Sync = std::array<std::array<long, 2 * _SHMEM_COLLECT_SYNC_SIZE>, kTurns>;
  long* sync() {
    return (*sync_)[turn_++ % kTurns].data();
  }

  Sync* sync_;
  long* work_;
  std::size_t turn_ = 0;
#else
  explicit Collectives(std::size_t /*words*/) {}
  static void broadcast(long* to, const long* from, std::size_t words, int root) {
    shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, words, root);
  }
  static void collect(long* to, const long* from, std::size_t words) {
    shmem_long_collect(SHMEM_TEAM_WORLD, to, from, words);
  }
  static void fcollect(long* to, const long* from, std::size_t words) {
    shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, words);
  }
  static void alltoall(long* to, const long* from, std::size_t words) {
    shmem_long_alltoall(SHMEM_TEAM_WORLD, to, from, words);
  }
  static void sum(long* to, long* from, std::size_t words) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, words);
  }
#endif
};

}  // namespace bench
