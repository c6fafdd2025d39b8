// SPDX-License-Identifier: Apache-2.0
// Looks after a PE that waits in a barrier: has the job been ended, has the time run out, has somebody died that is
// missing? And says so when it takes long.
#pragma once

#include <string>

#include "shmem/team/sync_view.hpp"

namespace shmem {

/// Which barrier it is: `count` of `team`; or which `call` that carries data, by a count of its own.
struct BarrierName {
  std::uint64_t count;
  int team;
  const char* algorithm;
  /// Whether it is one in two phases, where a member that makes it the other way would be waited for in vain.
  std::optional<bool> split = {};
  bool call = false;
};

/// The Check of one barrier. Costs nothing until it is first asked, which is when the waiter has given up spinning; all
/// times run from then on. Its errors: operation_canceled the job was ended; timed_out; owner_dead a missing member's
/// process is gone; protocol_error a member makes the barrier in another way.
class BarrierWatch {
 public:
  BarrierWatch(const Job& job, const TeamMap& map, const SyncView& view, const BarrierName& name)
      : job_(job), map_(map), view_(view), name_(name) {}

  /// In place of SHMEM_BARRIER_TIMEOUT.
  void limit_to(std::chrono::nanoseconds time) { limit_ = time; }
  /// Somebody else of this PE warns.
  void leave_warning() { warns_ = false; }

  /// Never ends it because of the time.
  void do_not_limit() { limit_ = std::chrono::nanoseconds::max(); }

  std::errc operator()();
  /// Until the time is over, or the next look.
  [[nodiscard]] std::chrono::nanoseconds longest_sleep() const;

  /// What went wrong, on what, and for whom it waited.
  [[nodiscard]] std::string explain(std::errc error) const;

 private:
  void begin(Clock::time_point now);
  void warn();
  [[nodiscard]] bool somebody_died();
  [[nodiscard]] bool somebody_present_died();
  [[nodiscard]] bool missing(int member) const;
  [[nodiscard]] const std::atomic<std::uint64_t>& left(int member) const;
  [[nodiscard]] bool differs(int member) const;
  [[nodiscard]] std::string differing_text() const;
  [[nodiscard]] int first_present() const;
  [[nodiscard]] std::string subject() const;
  [[nodiscard]] std::string missing_text() const;
  [[nodiscard]] std::string limit_text() const;

  const Job& job_;
  const TeamMap& map_;
  const SyncView& view_;
  BarrierName name_;
  std::optional<std::chrono::nanoseconds> limit_;
  bool warns_ = true;
  bool begun_ = false;
  int zombie_ = 0;   // the member to be looked at next
  int present_ = 0;  // the same of those who have come
  int dead_ = -1;    // a member that came, and then died
  Clock::time_point began_{};
  Clock::time_point deadline_{};
  Clock::time_point next_look_{};
  Clock::time_point next_warning_{};
};

}  // namespace shmem
