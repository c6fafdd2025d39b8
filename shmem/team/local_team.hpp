// SPDX-License-Identifier: Apache-2.0
// A team whose members are all on this node: they synchronise through the device if they have one, else in shared
// memory.
#pragma once

#include "shmem/offload/gba_team.hpp"
#include "shmem/team/survivors.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

class LocalTeam final : public Team {
 public:
  LocalTeam(const Job& job, const TeamPlan& plan)
      : Team(job, plan), gba_(job, map_, view_, slot_), survivors_(job, map_, view_, slot_) {}
  /// In a job on one node, where a PE's number on the node is its number in the world.
  LocalTeam(const Job& job, const TeamMap& map, int slot, std::uint64_t count)
      : LocalTeam(job, TeamPlan{.here = map, .world = map, .slot = slot, .count = count}) {}

  [[nodiscard]] BarrierStats stats() const override {
    return {.by_device = statistics_.by_device(), .by_software = statistics_.by_software()};
  }
  [[nodiscard]] const char* algorithm() const override { return gba_.active() ? "gba" : name_of(software_.algorithm); }
  [[nodiscard]] const std::string& gba_reason() const override { return gba_.reason(); }
  [[nodiscard]] std::string gba_text(const std::string& choice) const override;
  void report() const override;

  Result<void> sync() override;
  Result<void> sync_here() override { return sync(); }
  Result<void> arrive() override;
  Result<bool> test() override;
  Result<void> wait(std::optional<std::chrono::nanoseconds> limit = {}) override;
  Result<VoteResult> vote(std::uint64_t digest, bool willing, std::uint64_t number) override;

  Result<void> use_gba(const GbaMember& member, int ports) override;
  void explain_no_gba(std::string reason) override { gba_.explain(std::move(reason)); }
  Result<void> dissolve() override;

  [[nodiscard]] Survivors& survivors() override { return survivors_; }
  void retire(const Error& why) override {
    Team::retire(why);
    gba_.abandon();
  }

 private:
  bool enter_on_cores() override { return !gba_.serves(enter()); }
  Result<void> sync_by_core_zero() override;
  Result<void> gba_sync();
  Result<void> end_gba_sync(std::errc error, const BarrierMonitor& monitor);
  [[nodiscard]] BarrierName name_as_served(bool split) const;
  void close();

  GbaTeam gba_;
  LocalSurvivors survivors_;
  bool open_by_gba_ = false;                    // the open sync goes through the device
  std::optional<BarrierMonitor> open_monitor_;  // of test()
};

}  // namespace shmem
