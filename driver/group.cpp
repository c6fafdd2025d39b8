// SPDX-License-Identifier: Apache-2.0
#include "driver/group.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
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
      return {std::errc::broken_pipe, "a member or the owner left the group, or its process ended"};
    default:
      return {std::errc::io_error, "the device gave an unknown reason"};
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

std::errc Group::why_not(std::uint64_t word) {
  Backend& backend = membership_.device().backend();
  if (word == GBA_ALL_ONES) {
    backend.declare_lost();
    return std::errc::no_such_device;
  }
  if (GBA_FIELD_GET(GBA_FLAG_ERROR, word) != 0) return reason_of(GBA_FIELD_GET(GBA_FLAG_CODE, word)).code;
  if (++misses_ % kTestsPerLossCheck == 0) backend.check_lost();
  return backend.lost() ? std::errc::no_such_device : kNotYet;
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

void Group::drain_interrupts() const {
  std::uint64_t count = 0;
  // One read takes the whole count. Nothing there, a signal: a wake proves nothing anyway.
  if (::read(membership_.eventfd(), &count, sizeof(count)) < 0) return;
}

void Group::nap(nanoseconds limit) {
  Backend& backend = membership_.device().backend();
  const bool interrupts = membership_.device().can_interrupt();
  limit = std::clamp(limit, nanoseconds{0}, interrupts ? kLongestNap : kNapWithoutInterrupt);
  const timespec time{.tv_sec = 0, .tv_nsec = limit.count()};
  // An eventfd of -1 is passed over by poll.
  pollfd events[] = {backend.loss_event(), {.fd = membership_.eventfd(), .events = POLLIN, .revents = 0}};
  if (::ppoll(static_cast<pollfd*>(events), 2, &time, nullptr) <= 0) return;
  if (events[0].revents != 0) backend.declare_lost();
  if (events[1].revents != 0) drain_interrupts();
}

std::errc Group::sleep(std::uint64_t sequence, nanoseconds limit) {
  std::errc now = test(sequence);
  if (now != kNotYet) return now;
  // Also mends an arrival or a release that was lost (uapi rules 12 and 18).
  ring(sequence, GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, 1));
  now = test(sequence);
  if (now != kNotYet) return now;
  nap(limit);
  return test(sequence);
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
  const std::string text = barrier + " was not released in time: ";
  const auto control = read_register(membership_.device().map().control);
  if (!control) return control.error();
  if ((*control & GBA_CONTROL_ENABLE) == 0) {
    // The group may have entered ERROR since, another member's leaving after its own timeout for one: that says more.
    const std::errc now = test(sequence);
    if (now != std::errc{} && now != kNotYet) return describe(now, sequence);
    return {std::errc::timed_out, text + "the group is not enabled"};
  }
  const auto waited_for = missing();
  if (!waited_for) return waited_for.error();
  if (*waited_for == MemberMask{}) return {std::errc::timed_out, text + "all members have arrived by now"};
  return {std::errc::timed_out, text + to_text(*waited_for) + " did not arrive"};
}

Error Group::describe_error_release(std::errc failure, const std::string& barrier) {
  const std::uint64_t word = flag_.load();
  std::string text = barrier + " will not be released: " + reason_of(GBA_FIELD_GET(GBA_FLAG_CODE, word)).text;
  const auto detail = read_register(membership_.device().map().error_code);
  if (detail && *detail != 0 && GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, *detail) != kNoMember) {
    text += " (member " + std::to_string(GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, *detail)) + ")";
  }
  const std::uint64_t released = GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word);
  return {failure, text + "; the last one released is " + std::to_string(released)};
}

Error Group::describe(std::errc failure, std::uint64_t sequence) {
  const std::string barrier =
      "gba: group " + std::to_string(membership_.group()) + ": barrier " + std::to_string(sequence);
  if (failure == std::errc::no_such_device) return {failure, membership_.device().lost_text()};
  if (failure == std::errc::timed_out) return describe_timeout(sequence, barrier);
  return describe_error_release(failure, barrier);
}

}  // namespace gba
