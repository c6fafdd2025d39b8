// SPDX-License-Identifier: Apache-2.0
// One member's barriers: arrive, test, sleep, wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "driver/group_status.hpp"
#include "driver/membership.hpp"
#include "driver/mmio.hpp"
#include "driver/result.hpp"
#include "driver/wait.hpp"
#include "uapi/gba_device.h"

namespace gba {

/// Used by one thread at a time. The fast path, arrive() and a successful test(), takes no lock, makes no system call
/// and reads nothing from the device. Flag and doorbell stay mapped when the device is lost.
class Group {
 public:
  /// Not yet released, and nothing is wrong.
  static constexpr std::errc kNotYet = std::errc::resource_unavailable_try_again;

  /// REQUIRES: the membership has been joined.
  explicit Group(Membership membership);

  /// `notify`: GBA_ARRIVAL_NOTIFY or 0.
  void arrive(std::uint64_t sequence, std::uint64_t notify = 0) {
    const std::uint64_t word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | arrival_ | notify;
    ordering::data_before_doorbell();
    // Release: what this member stored before is visible to the members that it releases. Pairs with the device's
    // exchange.
    doorbell_.store(word);
    if (!wakeup_) {
      return;  // hardware never sleeps: nothing is read
    }
    ordering::doorbell_before_wakeup();
    // Relaxed: the fence orders it after the doorbell, and it publishes nothing. Pairs with the device's store of it.
    if ((wakeup_.load_relaxed() & GBA_WAKEUP_SLEEPING) != 0) {
      membership_.device().kick();
    }
  }

  /// Equality is success even with ERROR (uapi rule 18).
  [[nodiscard]] bool is_released(std::uint64_t sequence) const noexcept {
    // Pairs with the device's release store of the flag: what members stored before they arrived is visible
    // (uapi rule 20).
    return ((flag_.load() ^ sequence) & GBA_FLAG_SEQUENCE_MASK) == 0;
  }

  /// errc{}: released. kNotYet, or the reason why it will not be.
  std::errc test(std::uint64_t sequence) {
    // As is_released(), with one look at the word.
    const std::uint64_t word = flag_.load();
    if (((word ^ sequence) & GBA_FLAG_SEQUENCE_MASK) == 0) [[likely]] {
      return {};
    }
    return explain_miss(word, sequence);
  }

  /// Asks for an interrupt and sleeps until it comes, the device is lost, a signal comes, or `limit` has passed.
  /// Results as test().
  std::errc sleep(std::uint64_t sequence, std::chrono::nanoseconds limit);
  /// Results as test(), except kNotYet; timed_out after the deadline.
  std::errc wait(std::uint64_t sequence, Deadline deadline);

  /// The members that have not arrived in the open round.
  Result<MemberMask> missing();

  /// The full description of a failure that test(), sleep() or wait() returned. Asks the device; the Error has another
  /// code if the device reports something worse than a timeout.
  Error describe(std::errc failure, std::uint64_t sequence);

  Result<void> leave() { return membership_.leave(); }

 private:
  std::errc read_flag(std::uint64_t word, std::uint64_t sequence);
  std::errc explain_miss(std::uint64_t word, std::uint64_t sequence);
  std::errc spin(std::uint64_t sequence);
  void sleep_for(std::chrono::nanoseconds limit);
  void drain_interrupts();

  void watch(std::uint64_t sequence);
  /// Asks the device at intervals what delays the release. Results as test().
  std::errc ask_when_due(std::uint64_t sequence);
  /// Fails if anything but a missing member delays it.
  Result<void> find_trouble(std::uint64_t sequence);
  Result<void> check_place();
  Result<void> check_release(std::uint64_t sequence);

  Error describe_timeout(std::uint64_t sequence, const std::string& barrier);
  Error describe_error_release(std::errc failure, const std::string& barrier);
  [[nodiscard]] std::string barrier_name(std::uint64_t sequence) const;
  Result<std::uint64_t> read_register(std::uint64_t offset_in_block);

  Membership membership_;
  const MmioWord<std::uint64_t> doorbell_;
  const MmioWord<std::uint64_t> flag_;
  const MmioWord<std::uint32_t> wakeup_;
  const SpinPolicy spin_;
  const std::chrono::nanoseconds ask_if_alive_;  // the interval
  const std::uint64_t arrival_;                  // the arrival word without the sequence
  unsigned misses_ = 0;                          // tests that were kNotYet

  std::uint64_t watched_ = 0;                   // the sequence that the following members are about
  Clock::time_point next_alive_;                // when the device is asked next whether it is there
  Clock::time_point next_ask_;                  // when it is asked closely
  std::optional<Clock::time_point> sent_seen_;  // when it first said that it had released it
  std::optional<Error> trouble_;                // the description of the last failure
};

}  // namespace gba
