// SPDX-License-Identifier: Apache-2.0
// The kv_shuffle operator of one PE: cores, and what carries out either kind of plan.
#pragma once

#include <memory>

#include "shmem/kv/pair_shuffle.hpp"
#include "shmem/kv/team_shuffle.hpp"

namespace shmem::kv {

struct Settings {
  int cores = 2;
  Path path = Path::kAuto;
  std::size_t staging_room = std::size_t{16} << 20;
};

/// Used by one thread at a time; its collective calls are those of PairShuffle and TeamShuffle.
class Operator {
 public:
  /// Cache lines of symmetric memory, zero before any PE's first call, and there until all have ended their last.
  static std::size_t lines(int pes, int cores) { return TeamShuffle::kProposals + PairShuffle::word_count(pes, cores); }
  /// Error: not so many cores.
  static Result<void> check(const Settings& settings);
  /// `policy` is for the cores of all PEs together. Errors: as check(), threads cannot be made, or no memory.
  static Result<std::unique_ptr<Operator>> create(Site site, const Settings& settings, const WaitPolicy& policy,
                                                  std::byte* memory);

  Result<void> run(const TablePlan& plan, const Cache& cache) { return pairs_.run(plan, cache); }
  Result<void> run(const MovePlan* plan, const Cache& cache) { return team_.run(plan, cache); }

 private:
  Operator(Site site, const Settings& settings, const WaitPolicy& policy, std::unique_ptr<CoreGroup> cores,
           Copier copier, std::byte* memory);

  Site site_;
  WaitPolicy policy_;
  std::unique_ptr<CoreGroup> cores_;
  Copier copier_;
  TeamShuffle team_;
  PairShuffle pairs_;
};

}  // namespace shmem::kv
