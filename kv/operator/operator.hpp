// SPDX-License-Identifier: Apache-2.0
// The kv_shuffle operator of one PE: its cores, and the execution of both kinds of plans.
#pragma once

#include <memory>

#include "kv/operator/pair_shuffle.hpp"
#include "kv/operator/team_shuffle.hpp"

namespace shmem::kv {

struct OperatorSettings {
  int cores = 2;
  Path path = Path::kAuto;
  std::size_t staging_room = std::size_t{16} << 20;
};

/// Used by one thread at a time. Its collective calls are those of PairShuffle and TeamShuffle.
class Operator {
 public:
  /// The operator's symmetric memory, in cache lines: zero before the first call of any PE, and not freed before all
  /// PEs have ended their last one.
  static std::size_t lines(int pes, int cores) { return TeamShuffle::kProposals + PairShuffle::word_count(pes, cores); }
  /// Error: a number of cores or a path that is not supported.
  static Result<void> check(const OperatorSettings& settings);
  /// `policy` is for the cores of all PEs together. Errors: those of check(), no threads, no memory.
  static Result<std::unique_ptr<Operator>> create(std::unique_ptr<OperatorTeam> team, const OperatorSettings& settings,
                                                  const WaitPolicy& policy, std::byte* memory);

  /// This PE's number in the team.
  [[nodiscard]] int me() const { return team_->me(); }

  Result<void> run(const PairPlan& plan, const Cache& cache) { return pair_shuffle_.run(plan, cache); }
  /// nullptr: this PE has no plan, which is an Error on all PEs.
  Result<void> run(const MovePlan* plan, const Cache& cache) { return team_shuffle_.run(plan, cache); }

 private:
  Operator(std::unique_ptr<OperatorTeam> team, const OperatorSettings& settings, const WaitPolicy& policy,
           std::unique_ptr<CoreGroup> cores, Copier copier, std::byte* memory);

  std::unique_ptr<OperatorTeam> team_;
  WaitPolicy policy_;
  std::unique_ptr<CoreGroup> cores_;
  Copier copier_;
  TeamShuffle team_shuffle_;
  PairShuffle pair_shuffle_;
};

}  // namespace shmem::kv
