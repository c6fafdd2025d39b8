// SPDX-License-Identifier: Apache-2.0
#include "driver/group.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "uapi/gba_regs.h"

namespace gba {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kFirstNap = milliseconds{1};
constexpr nanoseconds kLongestNap = milliseconds{100};
/// A device that cannot interrupt is looked at more often.
constexpr nanoseconds kNapWithoutInterrupt = milliseconds{1};

/// A test makes no system call, so somebody who only ever tests would not learn of a lost device. One in so many looks.
constexpr unsigned kTestsPerLossCheck = 1024;

/// A barrier that takes long may never end, for a reason that no flag tells: FATAL, a device that was pulled out, a
/// release that got lost. So a waiter asks, but seldom: it costs the device, and many may wait.
constexpr nanoseconds kFirstAsk = std::chrono::seconds{1};
constexpr nanoseconds kAskAgain = std::chrono::seconds{2};
/// A release that the device says it has made, and that no repeated arrival brings for so long, is lost for good.
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
      arrival_(GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, membership_.member()) | GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1)) {}

/// What the flag says, whatever else has happened.
std::errc Group::read_flag(std::uint64_t word, std::uint64_t sequence) {
  if (((word ^ sequence) & GBA_FLAG_SEQUENCE_MASK) == 0) return {};
  if (word == GBA_ALL_ONES) {
    membership_.device().backend().declare_lost(Loss::kRemoved);
    return code_of(membership_.device().backend().loss());
  }
  if (GBA_FIELD_GET(GBA_FLAG_ERROR, word) != 0) return reason_of(GBA_FIELD_GET(GBA_FLAG_CODE, word)).code;
  return kNotYet;
}

std::errc Group::why_not(std::uint64_t word, std::uint64_t sequence) {
  const std::errc now = read_flag(word, sequence);
  if (now != kNotYet) return now;
  Backend& backend = membership_.device().backend();
  if (++misses_ % kTestsPerLossCheck == 0 && !backend.check_lost()) return ask_when_due(sequence);
  return backend.lost() ? code_of(backend.loss()) : kNotYet;
}

void Group::watch(std::uint64_t sequence) {
  if (sequence == watched_) return;
  watched_ = sequence;
  next_ask_ = Clock::now() + kFirstAsk;
  sent_seen_.reset();
}

std::errc Group::ask_when_due(std::uint64_t sequence) {
  watch(sequence);
  const auto now = Clock::now();
  if (now < next_ask_) return kNotYet;
  next_ask_ = now + kAskAgain;
  const auto well = find_trouble(sequence);
  // What came while the device was asked counts (uapi rule 18).
  const std::errc flag = read_flag(flag_.load(), sequence);
  if (well || flag != kNotYet) return flag;
  trouble_ = well.error();
  return trouble_->code;
}

Result<void> Group::find_trouble(std::uint64_t sequence) {
  if (auto well = membership_.device().check_condition(); !well) return well;
  if (auto placed = check_place(); !placed) return placed;
  return check_release(sequence);
}

/// Is this port still the member that it has joined as?
Result<void> Group::check_place() {
  Device& device = membership_.device();
  if (!device.tells_ports()) return {};
  const unsigned bits = device.map().member_port_bits;
  const std::uint32_t per_word = 64 / bits;
  const auto word = read_register(device.map().member_port + membership_.member() / per_word * UINT64_C(8));
  if (!word) return tl::make_unexpected(word.error());
  const std::uint64_t port = (*word >> (bits * (membership_.member() % per_word))) & ((UINT64_C(1) << bits) - 1);
  if (port == device.facts().port) return {};
  return fail(std::errc{ENETRESET}, "gba: group " + std::to_string(membership_.group()) + ": this port is not member " +
                                        std::to_string(membership_.member()) +
                                        " any more: it was reset by somebody else (FLR), or the word that the group "
                                        "had ended was lost");
}

Result<void> Group::check_release(std::uint64_t sequence) {
  const auto released = read_register(membership_.device().map().sequence);
  if (!released) return tl::make_unexpected(released.error());
  if (*released < sequence) return {};
  const auto now = Clock::now();
  if (!sent_seen_) sent_seen_ = now;
  if (now - *sent_seen_ < kLostRelease) return {};
  return fail(std::errc{ECOMM}, barrier_name(sequence) +
                                    " was released, but the release is lost: however often this member arrives again, "
                                    "nothing reaches its flag");
}

std::errc Group::spin(std::uint64_t sequence) {
  for (unsigned i = 0; i < spin_.spins + spin_.yields; ++i) {
    const std::errc now = test(sequence);
    if (now != kNotYet) return now;
    if (i < spin_.spins) {
      pause_processor();
    } else {
      ::sched_yield();
    }
  }
  return test(sequence);
}

void Group::drain_interrupts() {
  std::uint64_t count = 0;
  // One read takes the whole count. Nothing there, a signal: a wake proves nothing anyway.
  if (::read(membership_.eventfd(), &count, sizeof(count)) != sizeof(count)) return;
  // A storm would keep every sleeper awake. Without the interrupt naps are short, and miss nothing.
  if (interrupts_.take(count, Clock::now())) membership_.switch_interrupt_off();
}

void Group::nap(nanoseconds limit) {
  Backend& backend = membership_.device().backend();
  const bool interrupts = membership_.eventfd() >= 0;
  limit = std::clamp(limit, nanoseconds{0}, interrupts ? kLongestNap : kNapWithoutInterrupt);
  const timespec time{.tv_sec = 0, .tv_nsec = limit.count()};
  // An eventfd of -1 is passed over by poll.
  pollfd events[] = {backend.loss_event(), {.fd = membership_.eventfd(), .events = POLLIN, .revents = 0}};
  if (::ppoll(static_cast<pollfd*>(events), 2, &time, nullptr) <= 0) return;
  if (events[0].revents != 0) backend.check_lost();
  if (events[1].revents != 0) drain_interrupts();
}

std::errc Group::sleep(std::uint64_t sequence, nanoseconds limit) {
  std::errc now = test(sequence);
  if (now != kNotYet) return now;
  // Also mends an arrival or a release that was lost (uapi rules 12 and 18).
  interrupts_.ask(sequence);
  ring(sequence, GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, 1));
  now = test(sequence);
  if (now != kNotYet) return now;
  nap(limit);
  now = test(sequence);
  return now == kNotYet ? ask_when_due(sequence) : now;
}

std::errc Group::wait(std::uint64_t sequence, Deadline deadline) {
  std::errc now = spin(sequence);
  for (nanoseconds limit = kFirstNap; now == kNotYet; limit = std::min(2 * limit, kLongestNap)) {
    if (deadline.passed()) return std::errc::timed_out;
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
    if (!members) return tl::make_unexpected(members.error());
    if (*members == 0) continue;
    const auto arrived = read_register(profile.map.arrived_mask + std::uint64_t{8} * word);
    if (!arrived) return tl::make_unexpected(arrived.error());
    missing[word] = *members & ~*arrived;
  }
  return missing;
}

Error Group::describe_timeout(std::uint64_t sequence, const std::string& barrier) {
  watch(sequence);
  if (const auto well = find_trouble(sequence); !well && read_flag(flag_.load(), sequence) == kNotYet) {
    return well.error();
  }
  const std::string text = barrier + " was not released in time: ";
  const auto control = read_register(membership_.device().map().control);
  if (!control) return control.error();
  if ((*control & GBA_CONTROL_ENABLE) == 0) {
    // The group may have entered ERROR since, another member's leaving after its own timeout for one: that says more.
    const std::errc now = test(sequence);
    if (now != std::errc{} && now != kNotYet) return describe(now, sequence);
    return {std::errc::timed_out, text + "the group is not enabled"};
  }
  if (sent_seen_) return {std::errc::timed_out, text + "the device has released it, and the release has not come"};
  const auto waited_for = missing();
  if (!waited_for) return waited_for.error();
  if (*waited_for == MemberMask{}) return {std::errc::timed_out, text + "all members have arrived by now"};
  return {std::errc::timed_out, text + to_text(*waited_for) + " did not arrive"};
}

Error Group::describe_error_release(std::errc failure, const std::string& barrier) {
  const std::uint64_t word = flag_.load();
  Reason reason = reason_of(GBA_FIELD_GET(GBA_FLAG_CODE, word));
  const auto detail = read_register(membership_.device().map().error_code);
  const bool names_member = detail && *detail != 0 && GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, *detail) != kNoMember;
  // Of the group's end the flag says the same as of a member's; ERROR_CODE has no member then, or nothing any more
  // because the group has been allocated anew.
  if (failure == std::errc::broken_pipe && detail && !names_member) {
    reason = {std::errc::owner_dead, "the group was taken back: its owner freed it or has ended, or it was reclaimed"};
    failure = reason.code;
  }
  std::string text = barrier + " will not be released: " + reason.text;
  if (names_member) text += " (member " + std::to_string(GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, *detail)) + ")";
  const std::uint64_t released = GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word);
  return {failure, text + "; the last one released is " + std::to_string(released)};
}

std::string Group::barrier_name(std::uint64_t sequence) const {
  return "gba: group " + std::to_string(membership_.group()) + ": barrier " + std::to_string(sequence);
}

Error Group::describe(std::errc failure, std::uint64_t sequence) {
  if (trouble_ && trouble_->code == failure) return *std::exchange(trouble_, std::nullopt);
  const std::string barrier = barrier_name(sequence);
  Backend& backend = membership_.device().backend();
  // A loss that a signal handler found has not been told to the kernel yet.
  if (backend.lost() && backend.check_lost() && code_of(backend.loss()) == failure) return backend.loss_error();
  if (failure == std::errc::timed_out) return describe_timeout(sequence, barrier);
  return describe_error_release(failure, barrier);
}

}  // namespace gba
