// SPDX-License-Identifier: Apache-2.0
// Barriers of a team on the words of its pool (layout/kernel_sync.hpp), by an algorithm that a kernel names. The team's
// own barriers, their numbers and the device are not concerned.
#pragma once

#include <string>

#include "shmem/barrier/algorithms.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/cores/core_group.hpp"

namespace shmem {

/// The pools of a team's members on this node, seen from one of them, as the algorithms of barriers use them. Word 0 is
/// the one that a member stores for all others, as in a barrier that a program writes on these words.
class PoolView {
 public:
  struct Member {
    SyncWord& round;
    SyncWord& release;
    SyncWord& counter;
  };
  static constexpr int kRounds = 36;

  PoolView(const Job& job, const TeamMap& map, int slot)
      : job_(job), map_(map), slot_(static_cast<std::size_t>(slot)), me_(map.member(job.me).value_or(0)) {}

  [[nodiscard]] int size() const { return map_.size; }
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] const TeamMap& map() const { return map_; }
  [[nodiscard]] Member member(int i) const { return {word(i, 0), word(i, kRelease), word(i, kCounter)}; }
  [[nodiscard]] Member mine() const { return member(me_); }
  [[nodiscard]] SyncWord& round(int member, int i) const { return word(member, 1 + i); }
  /// The number of the last barrier that the member has entered, and of the last one that it has left.
  [[nodiscard]] SyncWord& entered(int member) const { return word(member, kEntered); }
  [[nodiscard]] SyncWord& left(int member) const { return pool(member).counter; }

 private:
  enum : int { kEntered = 1 + kRounds, kRelease, kCounter };
  static_assert(kCounter + 1 == static_cast<int>(kTeamPoolWords));

  [[nodiscard]] TeamPool& pool(int member) const { return job_.kernel_sync(map_.pe(member)).team_pool[slot_]; }
  [[nodiscard]] SyncWord& word(int member, int i) const { return pool(member).words[static_cast<std::size_t>(i)]; }

  const Job& job_;
  const TeamMap map_;
  const std::size_t slot_;
  const int me_;
};

/// The choice with the largest radix up to its own for which the pool has enough words.
BarrierChoice fit_to_pool(BarrierChoice choice, int members);

/// What a barrier is called in messages.
struct PoolBarrierName {
  const char* call;       // of the program
  const char* algorithm;  // by which it is made
  int core;
  std::uint64_t count = 0;
};

/// A wait in such a barrier. One more error: owner_dead if a member has died before it left the barrier.
class PoolMonitor final : public WaitMonitor {
 public:
  /// `view` outlives the monitor.
  PoolMonitor(const Job& job, const PoolView& view, const PoolBarrierName& name)
      : WaitMonitor(job), view_(view), name_(name) {}

 private:
  std::errc look() override;
  [[nodiscard]] std::string subject() const override;
  [[nodiscard]] std::string awaited() const override;
  [[nodiscard]] std::string ending(std::errc error) const override;

  const PoolView& view_;
  PoolBarrierName name_;
  int dead_ = -1;
};

/// Called by every core of every member with the same choice. No core returns before all have called. After an error
/// the words of the team are unusable.
Result<void> pool_sync(const Job& job, ThreadCore& core, const PoolView& view, const BarrierChoice& choice,
                       const char* call);

}  // namespace shmem
