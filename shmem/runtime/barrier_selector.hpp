// SPDX-License-Identifier: Apache-2.0
// Chooses how teams synchronise: the software algorithm, and whether they use the device.
#pragma once

#include <optional>
#include <string>

#include "shmem/config/tuning.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/offload/gba_port.hpp"
#include "shmem/runtime/barrier_trials.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

/// Owns the PE's port of the device, which all of its teams share. The Job outlives it. Several threads may equip
/// different teams at once.
class BarrierSelector {
 public:
  explicit BarrierSelector(const Job& job) : job_(job), port_(job.me) {}

  // In this order, before the first team:
  /// Reads the tuning tables.
  Result<void> load_tables();
  /// Opens this PE's port, if one is available. The other PEs know after the next barrier of the bootstrap.
  void open_port();
  /// Collective, after that barrier: settles which PEs have a port.
  Result<void> settle_ports();

  /// Collective over a new team: chooses its barriers by the environment.
  Result<void> equip(Team& team);
  /// The same for the team of an active set, which leaves the groups of the device to the teams of the program.
  Result<void> equip_set(Team& team);
  /// Collective over the team: switches to "auto", "gba" or a software algorithm. An Error, on all members, if that is
  /// not available, or if one of them gives another name, a wrong one or nullptr.
  Result<void> set_barrier(Team& team, const char* name);

 private:
  /// The algorithm named `algorithm`; for "auto" and "gba" what teams have measured, or that of the table.
  [[nodiscard]] BarrierChoice choose(const Team& team, const std::string& algorithm) const;
  /// Collective over the team: with a measurement if no other team has made one.
  Result<void> choose_for(Team& team, const std::string& algorithm) const;
  [[nodiscard]] BarrierTrials trials(const Team& team, const std::string& algorithm) const;
  /// Whether teams measure their barriers, and those like this one.
  [[nodiscard]] bool measures(const std::string& algorithm) const;
  [[nodiscard]] bool measures(const Team& team, const std::string& algorithm) const;
  /// What teams of this size have found.
  [[nodiscard]] MeasuredBarrier measured(const Team& team) const;
  /// For the members of a node.
  [[nodiscard]] const TuningRow& fitting_row(const Team& team) const;
  /// Between the nodes of the team, without the device.
  [[nodiscard]] NodesChoice choose_between(const Team& team, const std::string& algorithm) const;
  [[nodiscard]] bool oversubscribed() const;
  [[nodiscard]] GbaMember gba_member(const Team& team, bool asked);
  /// The user requires the device.
  [[nodiscard]] bool needs_gba() const;
  void report(const Team& team) const;
  [[nodiscard]] std::string reason_of(const Team& team) const;

  const Job& job_;
  GbaPort port_;
  std::string no_gba_ = "SHMEM_GBA=off";  // why this PE could not open a port
  int ports_ = 0;                         // PEs 0..ports_ - 1 have one each
  WaitPolicy gba_policy_{};
  TuningTable tuning_ = TuningTable::built_in();
  CollectiveTable collective_tuning_ = CollectiveTable::built_in();
};

}  // namespace shmem
