// SPDX-License-Identifier: Apache-2.0
// Barriers on the simulated machine, and the checks of their guarantee.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shmem/barrier/algorithms.hpp"
#include "tests/unit/shmem/incoherent/sim_core.hpp"

namespace incoherent {

struct BarrierSetup {
  std::vector<int> cores_of{};  // by PE
  int barriers = 4;
  /// Used in turn, one per barrier: a team may change its algorithm.
  std::vector<shmem::Algorithm> algorithms{};
  shmem::BarrierTuning tuning{};

  [[nodiscard]] std::string text() const;
};

/// `pes` PEs of `cores` cores each.
std::vector<int> alike(int pes, int cores);

/// One team of all PEs. Before each barrier every core stores to a line of its own; after it, every core checks the
/// lines of all cores.
class BarrierRun {
 public:
  explicit BarrierRun(BarrierSetup setup);

  /// Runs one schedule. Returns the failure, if any: a core left early, saw old data or got an error, or all hang.
  std::optional<std::string> run(std::uint64_t seed, Sites& sites);
  std::optional<std::string> run(std::uint64_t seed) {
    Sites sites;
    return run(seed, sites);
  }

 private:
  /// The sync memory of the team, as SyncView gives it to algorithms.
  class View;

  void run_core(int core);
  void look_at_data(SimCore& core, int number, std::uint64_t at_least);
  void check_entered(int number, int barrier);
  [[nodiscard]] std::uint64_t count_of(int barrier) const;
  [[nodiscard]] std::string name(int line) const;

  [[nodiscard]] shmem::TeamSync& team(int pe);
  [[nodiscard]] shmem::RoundWords& rounds(int pe);
  [[nodiscard]] shmem::SyncWord& data(int core);

  BarrierSetup setup_;
  int pes_;
  int cores_;
  std::vector<shmem::SyncWord> lines_;  // a TeamSync for each PE, RoundWords for each PE, a word for each core
  std::vector<int> entered_;            // barriers entered, by core; real memory, not simulated
  std::vector<int> entered_by_;         // cores that have entered, by barrier
  Machine machine_;
};

}  // namespace incoherent
