// SPDX-License-Identifier: Apache-2.0
// One boot of the guest with the device, from the host's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace vm {

/// The results, after the guest has switched off and all processes have ended.
struct GuestRun {
  std::string console;
  std::string qemu;                     // the output of QEMU itself
  std::string host;                     // why the host gave up, if it did
  std::string received_messages;        // by QEMU from the device
  bool switched_off = false;            // by itself, and QEMU exited with 0
  unsigned shared_rounds = 0;           // barriers of a raw vfio-user client with the guest
  std::uint64_t word_after_reset = 0;   // that client's flag once the guest has reset its function
  unsigned three_member_rounds = 0;     // barriers of that client with two processes of the guest
  std::uint64_t word_after_unplug = 0;  // its flag once one of them has lost its function
  std::size_t processes_left = 0;
};

/// Starts a device, boots the cache's `kernel` with it, and is the other member in the groups that the guest asks for.
/// Ends within some minutes, whatever the guest does.
GuestRun run_guest(const std::string& kernel);

}  // namespace vm
