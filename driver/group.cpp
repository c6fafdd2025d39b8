// SPDX-License-Identifier: Apache-2.0
#include "driver/group.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/pause.hpp"
#include "uapi/gba_regs.h"

namespace gba {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstSleep = milliseconds{1};
constexpr nanoseconds kLongestSleep = milliseconds{100};
/// The flag is polled more often if the device cannot interrupt.
constexpr nanoseconds kSleepWithoutInterrupt = milliseconds{1};

/// A test makes no system call, so a caller that only tests would not learn of a lost device. One test in this many
/// checks.
constexpr unsigned kTestsPerLossCheck = 1024;

/// A slow barrier may never end for a reason that no flag shows. A device that was pulled out, that has FATAL or that
/// does not answer is found by one register, a lost place or release by more. So a waiter asks the device, but seldom:
/// each question costs the device, and many may wait.
constexpr nanoseconds kAskIfAlive = milliseconds{250};
constexpr nanoseconds kAskIfAliveForEachMember = std::chrono::microseconds{250};
constexpr nanoseconds kFirstAsk = std::chrono::seconds{1};
constexpr nanoseconds kAskAgain = std::chrono::seconds{2};
/// A release that the device reports, and that repeated arrivals do not bring for this long, is lost for good.
constexpr nanoseconds kLostRelease = std::chrono::seconds{5};

/// ERROR_CODE names no member.
constexpr std::uint64_t kNoMember = GBA_ERROR_CODE_MEMBER_MASK;

struct Reason {
  std::errc code;
  const char* text;
};

Reason reason_of(std::uint64_t error) {
  switch (error) {
    case GBA_ERROR_LINK_DOWN:
      return {std::errc::network_down, "a member's link is down"};
    case GBA_ERROR_TIMEOUT:
      return {std::errc::stream_timeout, "the round took longer than the group's TIMEOUT"};
    case GBA_ERROR_DMA_FAULT:
      return {std::errc::bad_address, "the device could not write a release flag"};
    case GBA_ERROR_RESET:
      return {std::errc::connection_reset, "the group or the device was reset"};
    case GBA_ERROR_PROTOCOL:
      return {std::errc::protocol_error, "a member arrived out of order"};
    case GBA_ERROR_LEAVE:
      return {std::errc::broken_pipe, "a member left the group, or its process ended"};
    default:
      return {std::errc::bad_message, "the device gave an unknown reason"};
  }
}

}  // namespace

Group::Group(Membership membership)
    : membership_(std::move(membership)),
      doorbell_(membership_.device().doorbell(membership_.group())),
      flag_(membership_.flag()),
      wakeup_(membership_.device().wakeup()),
      spin_(membership_.device().spin(membership_.member_count())),
      ask_if_alive_(kAskIfAlive + membership_.member_count() * kAskIfAliveForEachMember),
      arrival_(GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, membership_.member()) | GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1)) {}

/// The state that the flag shows, whatever else has happened.
std::errc Group::read_flag(std::uint64_t word, std::uint64_t sequence) {
  if (((word ^ sequence) & GBA_FLAG_SEQUENCE_MASK) == 0) {
    return {};
  }
  if (word == GBA_ALL_ONES) {
    membership_.device().backend().declare_lost(Loss::kRemoved);
    return code_of(membership_.device().backend().loss());
  }
  if (GBA_FIELD_GET(GBA_FLAG_ERROR, word) != 0) {
    return reason_of(GBA_FIELD_GET(GBA_FLAG_CODE, word)).code;
  }
  return kNotYet;
}

std::errc Group::explain_miss(std::uint64_t word, std::uint64_t sequence) {
  const std::errc now = read_flag(word, sequence);
  if (now != kNotYet) {
    return now;
  }
  Backend& backend = membership_.device().backend();
  if (++misses_ % kTestsPerLossCheck == 0 && !backend.check_lost()) {
    return ask_when_due(sequence);
  }
  return backend.lost() ? code_of(backend.loss()) : kNotYet;
}

void Group::watch(std::uint64_t sequence) {
  if (sequence == watched_) {
    return;
  }
  watched_ = sequence;
  const auto now = Clock::now();
  next_alive_ = now + ask_if_alive_;
  next_ask_ = now + kFirstAsk;
  sent_seen_.reset();
}

std::errc Group::ask_when_due(std::uint64_t sequence) {
  watch(sequence);
  const auto now = Clock::now();
  if (now < next_alive_) {
    return kNotYet;
  }
  next_alive_ = now + ask_if_alive_;
  const bool closely = now >= next_ask_;
  if (closely) {
    next_ask_ = now + kAskAgain;
  }
  const auto healthy = closely ? find_trouble(sequence) : membership_.device().check_condition();
  // A release that arrived while the device was asked counts (uapi rule 18).
  const std::errc flag = read_flag(flag_.load(), sequence);
  if (healthy || flag != kNotYet) {
    return flag;
  }
  trouble_ = healthy.error();
  return trouble_->code;
}

Result<void> Group::find_trouble(std::uint64_t sequence) {
  if (auto healthy = membership_.device().check_condition(); !healthy) {
    return healthy;
  }
  if (auto placed = check_place(); !placed) {
    return placed;
  }
  return check_release(sequence);
}

/// Is this port still the member that it has joined as?
Result<void> Group::check_place() {
  Device& device = membership_.device();
  if (!device.tells_ports()) {
    return {};
  }
  const unsigned bits = device.map().member_port_bits;
  const std::uint32_t per_word = 64 / bits;
  const auto word = read_register(device.map().member_port + membership_.member() / per_word * UINT64_C(8));
  if (!word) {
    return word.error();
  }
  const std::uint64_t port = (*word >> (bits * (membership_.member() % per_word))) & ((UINT64_C(1) << bits) - 1);
  if (port == device.facts().port) {
    return {};
  }
  return fail(
      std::errc{ENETRESET},
      fmt::format("gba: group {}: this port is not member {} any more: another process reset it (FLR), or the message "
                  "that the group had ended was lost",
                  membership_.group(), membership_.member()));
}

Result<void> Group::check_release(std::uint64_t sequence) {
  const auto released = read_register(membership_.device().map().sequence);
  if (!released) {
    return released.error();
  }
  if (*released < sequence) {
    return {};
  }
  const auto now = Clock::now();
  if (!sent_seen_) {
    sent_seen_ = now;
  }
  if (now - *sent_seen_ < kLostRelease) {
    return {};
  }
  return fail(
      std::errc{ECOMM},
      fmt::format(
          "{} was released, but the release is lost: this member has arrived again and nothing reaches its flag",
          barrier_name(sequence)));
}

std::errc Group::spin(std::uint64_t sequence) {
  for (unsigned i = 0; i < spin_.spins + spin_.yields; ++i) {
    const std::errc now = test(sequence);
    if (now != kNotYet) {
      return now;
    }
    if (i < spin_.spins) {
      base::pause_processor();
    } else {
      ::sched_yield();
    }
  }
  return test(sequence);
}

void Group::drain_interrupts() {
  std::uint64_t count = 0;
  // One read takes the whole count. It may fail (nothing there, a signal): the flag alone says what has happened.
  (void)!::read(membership_.eventfd(), &count, sizeof(count));
}

void Group::sleep_for(nanoseconds limit) {
  Backend& backend = membership_.device().backend();
  const bool interrupts = membership_.eventfd() >= 0;
  limit = std::clamp(limit, nanoseconds{0}, interrupts ? kLongestSleep : kSleepWithoutInterrupt);
  const timespec time{.tv_sec = 0, .tv_nsec = limit.count()};
  // poll ignores an eventfd of -1.
  pollfd events[] = {backend.loss_event(), {.fd = membership_.eventfd(), .events = POLLIN, .revents = 0}};
  if (::ppoll(static_cast<pollfd*>(events), 2, &time, nullptr) <= 0) {
    return;
  }
  if (events[0].revents != 0) {
    backend.check_lost();
  }
  if (events[1].revents != 0) {
    drain_interrupts();
  }
}

std::errc Group::sleep(std::uint64_t sequence, nanoseconds limit) {
  std::errc now = test(sequence);
  if (now != kNotYet) {
    return now;
  }
  // Also repairs a lost arrival or release (uapi rules 12 and 18).
  arrive(sequence, GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, 1));
  now = test(sequence);
  if (now != kNotYet) {
    return now;
  }
  sleep_for(limit);
  now = test(sequence);
  return now == kNotYet ? ask_when_due(sequence) : now;
}

std::errc Group::wait(std::uint64_t sequence, Deadline deadline) {
  std::errc now = spin(sequence);
  for (nanoseconds limit = kFirstSleep; now == kNotYet; limit = std::min(2 * limit, kLongestSleep)) {
    if (deadline.passed()) {
      return std::errc::timed_out;
    }
    now = sleep(sequence, deadline.left(limit));
  }
  return now;
}

Result<std::uint64_t> Group::read_register(std::uint64_t offset_in_block) {
  Device& device = membership_.device();
  return device.control().read<std::uint64_t>(device.map().block(membership_.group()) + offset_in_block);
}

Result<MemberMask> Group::missing() {
  MemberMask missing{};
  const Profile& profile = membership_.device().profile();
  for (std::uint32_t word = 0; word < profile.mask_words(); ++word) {
    const auto members = read_register(profile.map.member_mask + std::uint64_t{8} * word);
    if (!members) {
      return members.error();
    }
    if (*members == 0) {
      continue;
    }
    const auto arrived = read_register(profile.map.arrived_mask + std::uint64_t{8} * word);
    if (!arrived) {
      return arrived.error();
    }
    missing[word] = *members & ~*arrived;
  }
  return missing;
}

Error Group::describe_timeout(std::uint64_t sequence, const std::string& barrier) {
  watch(sequence);
  if (const auto healthy = find_trouble(sequence); !healthy && read_flag(flag_.load(), sequence) == kNotYet) {
    return healthy.error();
  }
  const std::string text = fmt::format("{} was not released in time: ", barrier);
  const auto control = read_register(membership_.device().map().control);
  if (!control) {
    return control.error();
  }
  if ((*control & GBA_CONTROL_ENABLE) == 0) {
    // The group may have entered ERROR since, for instance because another member left after its own timeout: that says
    // more.
    const std::errc now = test(sequence);
    if (now != std::errc{} && now != kNotYet) {
      return describe(now, sequence);
    }
    return fail(std::errc::timed_out, text + "the group is not enabled");
  }
  if (sent_seen_) {
    return fail(std::errc::timed_out, text + "the device has released it, but the release has not arrived");
  }
  const auto waited_for = missing();
  if (!waited_for) {
    return waited_for.error();
  }
  if (*waited_for == MemberMask{}) {
    return fail(std::errc::timed_out, text + "all members have arrived by now");
  }
  return fail(std::errc::timed_out, fmt::format("{}{} did not arrive", text, to_text(*waited_for)));
}

Error Group::describe_error_release(std::errc failure, const std::string& barrier) {
  const std::uint64_t word = flag_.load();
  Reason reason = reason_of(GBA_FIELD_GET(GBA_FLAG_CODE, word));
  const auto detail = read_register(membership_.device().map().error_code);
  const bool names_member = detail && *detail != 0 && GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, *detail) != kNoMember;
  // The flag says the same when the group ends as when a member leaves. ERROR_CODE then names no member, or is clear
  // because the group has been allocated again.
  if (failure == std::errc::broken_pipe && detail && !names_member) {
    reason = {std::errc::owner_dead, "the group was taken back: its owner freed it or has ended, or it was reclaimed"};
    failure = reason.code;
  }
  const std::string member =
      names_member ? fmt::format(" (member {})", GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, *detail)) : "";
  return fail(failure, fmt::format("{} will not be released: {}{}; the last one released is {}", barrier, reason.text,
                                   member, GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word)));
}

std::string Group::barrier_name(std::uint64_t sequence) const {
  return fmt::format("gba: group {}: barrier {}", membership_.group(), sequence);
}

Error Group::describe(std::errc failure, std::uint64_t sequence) {
  if (trouble_ && trouble_->code == failure) {
    return *std::exchange(trouble_, std::nullopt);
  }
  const std::string barrier = barrier_name(sequence);
  Backend& backend = membership_.device().backend();
  // A loss that a signal handler found has not been declared yet.
  if (backend.lost() && backend.check_lost() && code_of(backend.loss()) == failure) {
    return backend.loss_error();
  }
  if (failure == std::errc::timed_out) {
    return describe_timeout(sequence, barrier);
  }
  return describe_error_release(failure, barrier);
}

}  // namespace gba
