// SPDX-License-Identifier: Apache-2.0
// This port's place in a group, from JOIN to LEAVE.
#pragma once

#include <cstdint>
#include <memory>

#include "base/fd.hpp"
#include "driver/device.hpp"
#include "driver/flag_memory.hpp"
#include "driver/result.hpp"

namespace gba {

/// Owns the place, the release flag and the interrupt of one member, and keeps the device open. Used by one thread at
/// a time.
class Membership {
 public:
  /// Errors: those of gba_group_join.
  static Result<Membership> join(std::shared_ptr<Device> device, const gba_group_handle& handle, std::uint32_t member);

  Membership(Membership&& other) noexcept
      : device_(std::move(other.device_)),
        group_(other.group_),
        member_count_(other.member_count_),
        member_(other.member_),
        line_(std::move(other.line_)),
        eventfd_(std::move(other.eventfd_)),
        id_(std::exchange(other.id_, 0)) {}
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  Membership& operator=(Membership&&) = delete;
  ~Membership();

  /// Ends it. A group that its owner has freed in the meantime is left already. Fails as a lost device does.
  Result<void> leave();

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] std::uint32_t group() const { return group_; }
  [[nodiscard]] std::uint32_t member_count() const { return member_count_; }
  [[nodiscard]] std::uint32_t member() const { return member_; }
  [[nodiscard]] MmioWord<std::uint64_t> flag() const { return line_.word(); }
  /// Readable when the group's interrupt came; -1 if the device cannot interrupt, or the machine has too few vectors.
  [[nodiscard]] int eventfd() const { return eventfd_.get(); }

 private:
  Membership(std::shared_ptr<Device> device, const gba_group_handle& handle, std::uint32_t member, FlagLine line)
      : device_(std::move(device)),
        group_(handle.group),
        member_count_(handle.member_count),
        member_(member),
        line_(std::move(line)) {}

  Result<void> bind(std::uint32_t key);
  Result<void> connect();

  std::shared_ptr<Device> device_;  // first: the flag line uses it to the end
  std::uint32_t group_;
  std::uint32_t member_count_;
  std::uint32_t member_;
  FlagLine line_;
  base::UniqueFd eventfd_;
  std::uint64_t id_ = 0;  // in the device's Memberships; 0: not joined
};

}  // namespace gba
