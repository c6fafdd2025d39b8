// SPDX-License-Identifier: Apache-2.0
// The lossless barrier: uapi/README.md, "Losing the device loses no barrier". gba/barrier.h says how it is used.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>

#include "base/forks.hpp"
#include "driver/barrier/port.hpp"
#include "driver/barrier/recovery.hpp"
#include "driver/barrier/words.hpp"
#include "driver/wait.hpp"

namespace gba::barrier {

/// How a barrier stands. Any other value is the negative errno with which it has failed.
enum class Outcome : int {
  kReleased = GBA_BARRIER_RELEASED,
  kCompleted = GBA_BARRIER_COMPLETED,
  kPending = -EAGAIN,
};

constexpr Outcome failed(int error) {
  return static_cast<Outcome>(error);
}

/// One member's side. Used by one thread at a time.
///
/// As long as nothing fails, words are published and not read. A member that has trouble pulls barrier k: it tells the
/// others, completes k by reading everybody's words, and says OFF from k + 1 on; a member that learns of it pulls too.
/// A barrier with an OFF in it is never released by the device, so all members pull it, all see the OFF, and all know
/// that the next barrier, and all after it, are software's.
class Barrier {
 public:
  /// REQUIRES: config_is_sound(config).
  explicit Barrier(const gba_barrier_config& config);
  static bool config_is_sound(const gba_barrier_config& config);

  /// It belongs to the process that this one was forked from: its words are that one's. Then, arrive() does nothing,
  /// test() fails with ECHILD, and nothing else is called but the destructor.
  [[nodiscard]] bool is_inherited() const { return process_ != base::forks_by_now(); }

  // The group of the device.
  Result<gba_group_handle> offer(std::uint64_t sequence);
  Result<void> join(const gba_group_handle* handle);
  [[nodiscard]] bool has_record() const { return record_ != nullptr; }
  void begin(std::uint64_t sequence);
  void disable();
  void leave();
  void free();
  [[nodiscard]] bool uses_device() const { return uses_device_; }

  // Barriers.
  void arrive(std::uint64_t k) {
    sequence_ = k;
    if (plain_ == base::forks_by_now()) [[likely]] {
      words_.publish(k, Vote::kOn);
      stage_ = Stage::kRung;
      gba_group_arrive(group_.membership.get(), k);
      return;
    }
    arrive_otherwise(k);
  }
  /// One look.
  Outcome test() {
    if (stage_ == Stage::kRung && !is_inherited()) [[likely]] {
      const int status = gba_group_test(group_.membership.get(), sequence_);
      return status == 0 ? released() : not_released(status);
    }
    return test_otherwise();
  }
  Outcome poll();
  Outcome sleep(std::chrono::nanoseconds limit) { return sleep(limit, {}); }
  Outcome wait(const gba_barrier_waiting& waiting, std::uint64_t timeout_ns) {
    const Outcome now = test();
    return now == Outcome::kPending ? wait_longer(waiting, timeout_ns) : now;
  }
  /// A check round that the caller has completed.
  void conclude();

  void turn_off(int failure, const char* trouble);
  /// 0 or a negative errno.
  int missing(std::uint64_t* mask);
  [[nodiscard]] gba_barrier_status status() const;

 private:
  enum class Stage {
    kIdle,       // no barrier is open
    kRung,       // the device will release it
    kGathering,  // a holder, which rings when all that share its port have arrived
    kFollowing,  // a member that shares a port: its holder says when it is released
    kPulled,     // it ends by words (uapi rule 27)
    kSoftware,   // the device is not used
  };

  void arrive_otherwise(std::uint64_t k);
  CheckVote check_vote();
  void ring_for_sharers();
  Outcome test_otherwise();
  Outcome released();
  Outcome not_released(int status);
  Outcome wait_longer(const gba_barrier_waiting& waiting, std::uint64_t timeout_ns);
  Outcome sleep(std::chrono::nanoseconds limit, const gba_barrier_waiting& waiting);
  static void nap(std::chrono::nanoseconds limit, const gba_barrier_waiting& waiting);
  [[nodiscard]] bool spin_again(const gba_barrier_waiting& waiting, std::uint32_t turn) const;
  Outcome spin(const gba_barrier_waiting& waiting);

  [[nodiscard]] bool alarmed() const { return alarm_ != nullptr && load_alarm(alarm_) > base_; }
  [[nodiscard]] bool others_pull() const;
  void pull();
  Outcome pull_for_others();
  int raise_alarm();
  Outcome look_at_words();
  void lose();
  void note_trouble(int failure, const char* text);
  /// Arrivals take the short way: see arrive().
  void update_plain();

  const unsigned process_ = base::forks();

  // As configured.
  Words words_;
  const MemberPlace place_;
  std::uint64_t* const alarm_;
  int (*const raise_)(void*, std::uint64_t);
  void* const context_;
  std::uint64_t* const released_;
  const std::uint32_t* const sharers_;
  const std::uint32_t sharer_count_;
  gba_group_handle* const record_;
  std::optional<Recovery> recovery_;

  // The group.
  HeldGroup candidate_;     // offered, joined, and not begun
  HeldGroup group_;         // in use
  std::uint64_t base_ = 0;  // its first barrier is the one after it
  bool uses_device_ = false;
  bool off_ = false;     // this member votes OFF, and never rings this group again
  bool raised_ = false;  // others' alarms, for this group
  int failure_ = 0;
  std::array<char, 512> trouble_{};  // a fixed size: nothing is allocated while a barrier is open

  // The open barrier, or the last one.
  static constexpr unsigned kNotPlain = UINT_MAX;
  unsigned plain_ = kNotPlain;  // else process_
  Stage stage_ = Stage::kIdle;
  std::uint64_t sequence_ = 0;
  std::uint32_t asked_ = 0;  // so many sharers have arrived
  std::uint32_t seen_ = 0;   // so many words are there
  bool off_seen_ = false;    // and one of them says OFF
  std::uint64_t polled_ = 0;
  Clock::time_point next_look_{};  // of poll()
  std::chrono::nanoseconds look_again_{};

  std::uint64_t by_device_ = 0;
  std::uint64_t in_software_ = 0;
  std::uint64_t before_group_ = 0;  // by_device_ when the group came into use
};

}  // namespace gba::barrier

struct gba_barrier : gba::barrier::Barrier {
  using Barrier::Barrier;
};
