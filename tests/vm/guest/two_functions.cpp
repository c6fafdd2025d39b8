// SPDX-License-Identifier: Apache-2.0
// libgba in two processes, each with a function of its own.
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

/// Member 1 of a group that the other process hands out, until all have run `rounds` barriers.
Member be_second_member(const Channel& channel, const Device& device, unsigned rounds) {
  const auto handle = channel.receive();
  auto member = join(device, handle, 1);
  channel.signal();
  run_barriers(member, rounds);
  channel.signal();
  return member;
}

/// Hands a group of three to the other process and to the host and runs `rounds` barriers with them.
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
    channel.await();  // the group is to end in good order
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

}  // namespace

void check_two_functions(Checks& checks) {
  const auto functions = PciFunction::find_all();
  checks.run("libgba_three_members", [&] { check_three_members(functions); });
}

}  // namespace guest
