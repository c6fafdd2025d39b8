// SPDX-License-Identifier: Apache-2.0
// libgba in two processes, each with its own function.
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gba/gba.h"
#include "tests/vm/console.hpp"
#include "tests/vm/guest/checks.hpp"
#include "tests/vm/guest/libgba.hpp"
#include "tests/vm/guest/other_process.hpp"
#include "tests/vm/guest/pci_function.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

constexpr unsigned kAskedRounds = 10;

/// Becomes member 1 of a group that the other process made, and runs `rounds` barriers.
Member be_second_member(const Channel& channel, const Device& device, unsigned rounds) {
  const auto handle = channel.receive();
  auto member = join(device, handle, 1);
  channel.signal();
  run_barriers(member, rounds);
  channel.signal();
  return member;
}

/// Passes a group of three to the other process and to the host, and runs `rounds` barriers with them.
Member be_first_member(const OtherProcess& other, const gba_group_handle& handle, const char* name,
                       const Device& device, unsigned rounds) {
  auto member = join(device, handle, 0);
  other.channel().send(handle);
  other.channel().await();
  invite_host(name, {.id = handle.group, .key = handle.key});
  run_barriers(member, rounds);
  other.channel().await();
  return member;
}

void check_three_members(const std::vector<PciFunction>& functions) {
  const OtherProcess other([&](const Channel& channel) {
    const auto device = open(functions[1].address());
    const auto member = be_second_member(channel, device, vm::kRounds);
    channel.await();  // before the group ends, to end it without an error
  });
  const auto device = open(functions[0].address());
  const auto handle = make_group(device, 3);
  auto member = be_first_member(other, handle, vm::kThreeMembersGroup, device, vm::kRounds);
  require_gba(::gba_group_disable(device.get(), &handle), 0, "gba_group_disable");
  other.channel().signal();
  other.finish();
  require_gba(::gba_group_leave(member.release()), 0, "gba_group_leave");
  require_gba(::gba_group_free(device.get(), &handle), 0, "gba_group_free");
}

/// Polls for the release, without asking for an interrupt.
void await_release(const Member& member, std::uint64_t round) {
  int result = -EAGAIN;
  const auto released = [&] { return (result = ::gba_group_test(member.get(), round)) != -EAGAIN; };
  wait_for(released, "the release of round " + std::to_string(round));
  require_gba(result, 0, "gba_group_test " + std::to_string(round));
}

/// The member that asks for an interrupt gets one, and the other member none.
void ask_for_interrupt(const Member& member, std::uint64_t round, const Channel& other, const PciFunction& own,
                       const PciFunction& others) {
  const auto before = own.interrupts();
  const auto before_there = others.interrupts();
  require_gba(::gba_group_sleep(member.get(), round, 0), -EAGAIN, "gba_group_sleep, alone");
  other.signal();
  await_release(member, round);
  const auto raised = [&] { return own.interrupts() != before || others.interrupts() != before_there; };
  wait_for(raised, "the interrupt of round " + std::to_string(round));
  require_equal(own.interrupts() - before, 1, "interrupts of the function that asked in round " + hex(round));
  require_equal(others.interrupts() - before_there, 0, "interrupts of the other function in round " + hex(round));
  other.signal();
}

void arrive_unasked(const Member& member, std::uint64_t round, const Channel& other) {
  other.await();
  ::gba_group_arrive(member.get(), round);
  await_release(member, round);
  other.await();
}

/// Member `number` of two, which ask for interrupts in turn.
void take_turns(const Member& member, unsigned number, const Channel& other,
                const std::vector<PciFunction>& functions) {
  for (std::uint64_t round = 1; round <= kAskedRounds; ++round) {
    if (round % 2 == number) {
      ask_for_interrupt(member, round, other, functions[number], functions[1 - number]);
    } else {
      arrive_unasked(member, round, other);
    }
  }
}

void be_member_of_two(const Channel& channel, const std::vector<PciFunction>& functions) {
  const auto device = open(functions[1].address());
  const auto member = join(device, channel.receive(), 1);
  channel.signal();
  take_turns(member, 1, channel, functions);
  channel.await();  // before the group ends, to end it without an error
}

// The first function stays open while the second is opened, closed and opened again.
void check_interrupts(const std::vector<PciFunction>& functions) {
  constexpr unsigned kOpenings = 3;
  const OtherProcess other([&](const Channel& channel) {
    for (unsigned opening = 0; opening < kOpenings; ++opening) {
      be_member_of_two(channel, functions);
      channel.signal();
    }
  });
  const auto device = open(functions[0].address());
  for (unsigned opening = 0; opening < kOpenings; ++opening) {
    const auto handle = make_group(device, 2);
    auto member = join(device, handle, 0);
    other.channel().send(handle);
    other.channel().await();
    take_turns(member, 0, other.channel(), functions);
    require_gba(::gba_group_disable(device.get(), &handle), 0, "gba_group_disable");
    other.channel().signal();
    other.channel().await();
    end_group(device, handle, std::move(member));
  }
  other.finish();
}

/// The kernel reclaims the function while this process waits in a barrier.
void wait_to_be_unplugged(const PciFunction& function, const Channel& channel) {
  const auto device = open(function.address());
  const auto member = be_second_member(channel, device, 1);
  ::gba_group_arrive(member.get(), 2);
  const int loss = ::gba_group_wait(member.get(), 2, kWaitLimit);
  require_in(::gba_error_text(), "the kernel wants it back");
  gba_device_info info{};
  require_gba(::gba_device_get_info(device.get(), &info), loss, "gba_device_get_info of an unplugged device");
  // The function is returned although it is still open here.
  wait_for([&] { return !function.exists(); }, "the end of the function");
}

void check_unplug(const std::vector<PciFunction>& functions) {
  const OtherProcess other([&](const Channel& channel) {
    wait_to_be_unplugged(functions[1], channel);
    expect_open(functions[1].address(), -ENODEV);
    channel.signal();
    channel.await();
    run_lone_barriers(open(functions[0].address()), 3);
  });
  auto device = open(functions[0].address());
  const auto handle = make_group(device, 3);
  auto member = be_first_member(other, handle, vm::kUnplugGroup, device, 1);
  ::gba_group_arrive(member.get(), 2);
  ask_to_unplug();
  require_gba(::gba_group_wait(member.get(), 2, kWaitLimit), -EPIPE, "gba_group_wait with an unplugged member");
  require_in(::gba_error_text(), "member 1");
  other.channel().await();
  end_group(device, handle, std::move(member));
  run_lone_barriers(device, 3);
  device.reset();
  other.channel().signal();
  other.finish();
}

}  // namespace

void check_two_functions(Checks& checks) {
  const auto functions = PciFunction::find_all();
  checks.run("libgba_three_members", [&] { check_three_members(functions); });
  checks.run("libgba_interrupts", [&] { check_interrupts(functions); });
}

void check_unplugging(Checks& checks) {
  const auto functions = PciFunction::find_all();
  checks.run("libgba_unplug", [&] { check_unplug(functions); });
}

}  // namespace guest
