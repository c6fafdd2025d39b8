// SPDX-License-Identifier: Apache-2.0
// libgba through its public header, for the checks: each failure throws std::exception with the reason.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "gba/gba.h"
#include "tests/vm/guest/require.hpp"

namespace guest {

inline constexpr std::uint64_t kMillisecond = 1000000;
inline constexpr std::uint64_t kWaitLimit = 20000 * kMillisecond;

struct Close {
  void operator()(gba_device* device) const { ::gba_close(device); }
};
using Device = std::unique_ptr<gba_device, Close>;

struct Leave {
  void operator()(gba_group* group) const { ::gba_group_leave(group); }
};
using Member = std::unique_ptr<gba_group, Leave>;

/// Requires that `result` of a libgba call is `wanted`, 0 or a negative errno.
void require_gba(int result, int wanted, const std::string& what);
void require_in(const std::string& text, const std::string& wanted);

template <typename Condition>
void wait_for(const Condition& condition, const std::string& what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kWaitLimit);
  while (!condition()) {
    require(std::chrono::steady_clock::now() < end, what + " does not come");
    ::sched_yield();
  }
}

Device open(const std::string& path, std::uint32_t flags = GBA_FLAGS_AUTO);
/// Requires that opening it gives `wanted`: 0 or a negative errno.
void expect_open(const std::string& path, int wanted, std::uint32_t flags = GBA_FLAGS_AUTO);
gba_device_info info_of(const Device& device);

/// The group is enabled and starts at sequence 0.
gba_group_handle make_group(const Device& device, unsigned members);
Member join(const Device& device, const gba_group_handle& handle, unsigned member);

void run_barrier(const Member& member, std::uint64_t round);
void run_barriers(const Member& member, unsigned rounds);
/// Runs barriers in a group with one member.
void run_lone_barriers(const Device& device, unsigned rounds);

/// Ends the group without an error release to any member.
void end_group(const Device& device, const gba_group_handle& handle, Member member);

}  // namespace guest
