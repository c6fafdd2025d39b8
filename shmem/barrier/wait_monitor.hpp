// SPDX-License-Identifier: Apache-2.0
// Ends waits that cannot succeed: the job was ended, the wait timed out, an awaited PE has died. Warns when a wait
// takes long, and explains why it ended.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "shmem/layout/peers.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// The Check of one wait. It costs nothing until its first call, when the waiter has stopped spinning; all times run
/// from then on. Its errors: operation_canceled if the job was ended; timed_out after SHMEM_BARRIER_TIMEOUT.
///
/// The base class is for waits without a known PE: for cores of this PE, or for a word that any PE may change. Derived
/// classes know the awaited PEs. Copies are independent. Used by one thread.
class WaitMonitor {
 public:
  explicit WaitMonitor(const Job& job) : job_(job) {}
  WaitMonitor(const WaitMonitor&) = default;
  WaitMonitor& operator=(const WaitMonitor&) = delete;
  virtual ~WaitMonitor() = default;

  /// Replaces SHMEM_BARRIER_TIMEOUT.
  void limit_to(std::chrono::nanoseconds time) { limit_ = time; }
  /// The wait never times out.
  void do_not_limit() { limit_ = std::chrono::nanoseconds::max(); }
  /// Another thread of this PE warns.
  void leave_warning() { warns_ = false; }

  std::errc operator()();
  /// The time until the deadline, or until the next call that the waiter should make.
  [[nodiscard]] std::chrono::nanoseconds longest_sleep() const;

  /// What failed, why, and for which PEs it waited. Without a subject(): the rest of a sentence that begins with the
  /// awaited thing.
  [[nodiscard]] virtual std::string explain(std::errc error) const;

 protected:
  /// The interval of look().
  WaitMonitor(const Job& job, std::chrono::nanoseconds look_each) : job_(job), look_each_(look_each) {}

  /// The subject of messages: what waits.
  [[nodiscard]] virtual std::string subject() const { return ""; }
  /// The awaited PEs.
  [[nodiscard]] virtual std::string awaited() const { return ""; }
  /// The reason for the end, after the subject.
  [[nodiscard]] virtual std::string ending(std::errc error) const;
  /// Called from time to time: an error if the wait cannot succeed.
  virtual std::errc look() { return {}; }
  /// Warns that the wait has taken this long.
  virtual void warn(std::chrono::seconds waited) const;

  [[nodiscard]] const Job& job() const { return job_; }
  /// The members of `set` that `named` holds for, for messages.
  template <std::predicate<int> Named>
  [[nodiscard]] std::string names_of(const TeamMap& set, Named named) const;
  /// The number of processes that one look() checks in the slower way, which also finds zombies.
  static constexpr int kMostZombieLooks = 16;

 private:
  /// The most PEs that one message names.
  static constexpr int kMostNamed = 16;

  void begin(Clock::time_point now);

  const Job& job_;
  std::chrono::nanoseconds look_each_ = std::chrono::milliseconds{500};  // at most; less in the beginning
  std::chrono::nanoseconds until_look_{0};                               // from the last one to the next
  std::optional<std::chrono::nanoseconds> limit_;
  bool warns_ = true;
  bool begun_ = false;
  Clock::time_point began_{};
  Clock::time_point deadline_{};
  Clock::time_point next_look_{};
  Clock::time_point next_warning_{};
};

template <std::predicate<int> Named>
std::string WaitMonitor::names_of(const TeamMap& set, Named named) const {
  std::string text;
  int count = 0;
  for (int i = 0; i < set.size; ++i) {
    if (!named(i)) {
      continue;
    }
    if (++count > kMostNamed) {
      return text + " and more";
    }
    text += (count > 1 ? ", " : "") + describe_pe(job_, set.pe(i));
  }
  return text;
}

/// What waited, in the message of a failed wait: "barrier 3 of team 0", "shmem_signal_wait_until".
std::string_view waiter_in(std::string_view message);

/// The awaited barrier: `count` of `team`; or the eager `call`, with a count of its own.
struct BarrierName {
  std::uint64_t count;
  int team;
  const char* algorithm;
  /// Whether the barrier is split-phase. A member that makes it the other way would never complete it.
  std::optional<bool> split = {};
  bool call = false;
  /// Barriers of `count` that messages do not number: BarrierStatistics::exclude().
  std::uint64_t excluded = 0;
};

/// A wait in a barrier or collective call of a team. More errors: owner_dead if the process of a needed member is gone;
/// protocol_error if a member makes the barrier in the other way. `job`, `map` and `view` outlive it.
class BarrierMonitor final : public WaitMonitor {
 public:
  BarrierMonitor(const Job& job, const TeamMap& map, const SyncView& view, const BarrierName& name)
      : WaitMonitor(job), map_(map), view_(view), name_(name) {}

 private:
  std::errc look() override;
  void warn(std::chrono::seconds waited) const override;
  [[nodiscard]] std::string subject() const override;
  [[nodiscard]] std::string awaited() const override;
  [[nodiscard]] std::string ending(std::errc error) const override;

  [[nodiscard]] bool is_missing(int member) const;
  [[nodiscard]] bool missing_member_died();
  [[nodiscard]] bool arrived_member_died();
  [[nodiscard]] const std::atomic<std::uint64_t>& left(int member) const;
  [[nodiscard]] bool differs(int member) const;
  /// A member that makes the barrier in the other way.
  [[nodiscard]] std::string differing_text() const;

  const TeamMap& map_;
  const SyncView& view_;
  BarrierName name_;
  int next_missing_ = 0;  // the missing member to check next
  int next_arrived_ = 0;  // the arrived member to check next
  int dead_ = -1;         // a member that arrived and then died
};

/// A BarrierMonitor that is made when a wait first asks it: most waits are over before. make(monitor) emplaces it.
template <typename Make>
class LateMonitor {
 public:
  explicit LateMonitor(Make make) : make_(make) {}

  std::errc operator()() { return monitor()(); }
  [[nodiscard]] std::chrono::nanoseconds longest_sleep() const { return monitor().longest_sleep(); }
  [[nodiscard]] std::string explain(std::errc error) const { return monitor().explain(error); }

 private:
  BarrierMonitor& monitor() const { return monitor_ ? *monitor_ : make_(monitor_); }

  Make make_;
  mutable std::optional<BarrierMonitor> monitor_;
};

}  // namespace shmem
