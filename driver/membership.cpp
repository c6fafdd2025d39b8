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
  if (auto good = device->check(handle); !good) return tl::make_unexpected(good.error());
  if (member >= handle.member_count) {
    return fail(std::errc::invalid_argument, "gba: " + device->backend().path() + ": cannot join group " +
                                                 std::to_string(handle.group) + " as member " + std::to_string(member) +
                                                 ": it has members 0 to " + std::to_string(handle.member_count - 1));
  }
  auto line = device->flags().take(handle.group);
  if (!line) return tl::make_unexpected(line.error());
  Membership membership(std::move(device), handle, member, *std::move(line));
  if (auto bound = membership.bind(handle.key); !bound) return tl::make_unexpected(bound.error());
  if (auto connected = membership.connect(); !connected) return tl::make_unexpected(connected.error());
  return membership;
}

Result<void> Membership::bind(std::uint32_t key) {
  const Command join{.opcode = GBA_CMD_JOIN,
                     .group = static_cast<std::uint8_t>(group_),
                     .member = static_cast<std::uint16_t>(member_),
                     .key = key};
  Places& places = device_->places();
  const std::lock_guard lock(places.mutex);
  const auto joined =
      device_->commands().run(join, "join group " + std::to_string(group_) + " as member " + std::to_string(member_));
  if (!joined) return tl::make_unexpected(joined.error());
  id_ = ++places.last_id;
  places.holder[group_] = id_;
  return {};
}

Result<void> Membership::connect() {
  const std::uint64_t address = device_->map().release_address_of(group_, member_);
  if (auto told = device_->control().write<std::uint64_t>(address, line_.address()); !told) return told;
  if (!device_->can_interrupt()) return {};
  eventfd_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd_) return fail_errno(errno, "gba: cannot make an eventfd for group " + std::to_string(group_));
  return device_->backend().arm_irq(GBA_IRQ_MSIX, group_, eventfd_.get());
}

void Membership::switch_interrupt_off() {
  if (!device_->backend().lost()) (void)device_->backend().disarm_irq(GBA_IRQ_MSIX, group_);
  eventfd_ = UniqueFd();
  device_->note_storm(group_);
}

Result<void> Membership::leave() {
  if (id_ == 0) return {};
  device_->forget_storm(group_);
  Places& places = device_->places();
  const std::lock_guard lock(places.mutex);
  const bool holds_place = places.holder[group_] == std::exchange(id_, 0);
  if (!holds_place) return {};
  places.holder[group_] = 0;
  const auto left = device_->commands().run({.opcode = GBA_CMD_LEAVE, .group = static_cast<std::uint8_t>(group_)},
                                            "leave group " + std::to_string(group_));
  if (eventfd_ && !device_->backend().lost()) (void)device_->backend().disarm_irq(GBA_IRQ_MSIX, group_);
  if (left || left.error().code == std::errc::not_connected ||
      left.error().code == std::errc::no_such_file_or_directory) {
    return {};
  }
  return tl::make_unexpected(left.error());
}

Membership::~Membership() {
  (void)leave();
}

}  // namespace gba
