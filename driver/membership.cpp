// SPDX-License-Identifier: Apache-2.0
#include "driver/membership.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "uapi/gba_regs.h"

namespace gba {

Result<Membership> Membership::join(std::shared_ptr<Device> device, const gba_group_handle& handle,
                                    std::uint32_t member) {
  if (auto good = device->check(handle); !good) {
    return good.error();
  }
  if (member >= handle.member_count) {
    return fail(std::errc::invalid_argument,
                fmt::format("gba: {}: cannot join group {} as member {}: it has members 0 to {}",
                            device->backend().path(), handle.group, member, handle.member_count - 1));
  }
  auto line = device->flags().take(handle.group);
  if (!line) {
    return line.error();
  }
  Membership membership(std::move(device), handle, member, *std::move(line));
  if (auto bound = membership.bind(handle.key); !bound) {
    return bound.error();
  }
  if (auto connected = membership.connect(); !connected) {
    return connected.error();
  }
  return membership;
}

Result<void> Membership::bind(std::uint32_t key) {
  const Command join{.opcode = GBA_CMD_JOIN,
                     .group = static_cast<std::uint8_t>(group_),
                     .member = static_cast<std::uint16_t>(member_),
                     .key = key};
  Memberships& memberships = device_->memberships();
  const std::lock_guard lock(memberships.mutex);
  const auto joined = device_->commands().run(join, fmt::format("join group {} as member {}", group_, member_));
  if (!joined) {
    return joined.error();
  }
  id_ = ++memberships.last_id;
  memberships.holder[group_] = id_;
  return {};
}

Result<void> Membership::connect() {
  const std::uint64_t address = device_->map().release_address_of(group_, member_);
  if (auto told = device_->control().write<std::uint64_t>(address, line_.address()); !told) {
    return told;
  }
  if (!device_->can_interrupt()) {
    return {};
  }
  eventfd_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd_) {
    return fail_errno(errno, fmt::format("gba: cannot make an eventfd for group {}", group_));
  }
  auto armed = device_->backend().arm_irq(GBA_IRQ_MSIX, group_, eventfd_.get());
  if (!armed && armed.error().code == std::errc::no_space_on_device) {
    // The machine has too few interrupt vectors: sleepers look at the flag instead.
    eventfd_.reset();
    return {};
  }
  return armed;
}

Result<void> Membership::leave() {
  if (id_ == 0) {
    return {};
  }
  Memberships& memberships = device_->memberships();
  const std::lock_guard lock(memberships.mutex);
  const bool holds_place = memberships.holder[group_] == std::exchange(id_, 0);
  if (!holds_place) {
    return {};
  }
  memberships.holder[group_] = 0;
  const auto left = device_->commands().run({.opcode = GBA_CMD_LEAVE, .group = static_cast<std::uint8_t>(group_)},
                                            fmt::format("leave group {}", group_));
  if (eventfd_ && !device_->backend().lost()) {
    (void)device_->backend().disarm_irq(GBA_IRQ_MSIX, group_);
  }
  if (left || left.error().code == std::errc::not_connected ||
      left.error().code == std::errc::no_such_file_or_directory) {
    return {};
  }
  return left.error();
}

Membership::~Membership() {
  (void)leave();
}

}  // namespace gba
