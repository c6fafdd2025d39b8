// SPDX-License-Identifier: Apache-2.0
// Looks after a PE that waits in a barrier: has the job been ended, has the time run out, has somebody died that is
// missing?
#pragma once

#include <string>

#include "shmem/team/sync_view.hpp"

namespace shmem {

/// The Check of one barrier. Costs nothing until it is first asked, which is when the waiter has given up spinning.
/// Its errors: operation_canceled the job was ended; timed_out; owner_dead a missing member's process is gone.
class BarrierWatch {
 public:
  BarrierWatch(const Job& job, const TeamMap& map, const SyncView& view, std::uint64_t count)
      : job_(job), map_(map), view_(view), count_(count) {}

  std::errc operator()();

  /// What went wrong, on what, and for whom it waited.
  [[nodiscard]] std::string explain(std::errc error, int team, const char* algorithm) const;

 private:
  [[nodiscard]] bool somebody_died() const;
  [[nodiscard]] bool missing(int member) const;

  const Job& job_;
  const TeamMap& map_;
  const SyncView& view_;
  std::uint64_t count_;
  Clock::time_point deadline_{};
  Clock::time_point next_look_{};
};

}  // namespace shmem
