// SPDX-License-Identifier: Apache-2.0
// Which kernel this process runs on, and in which part of it: what tells machines and containers apart.
#pragma once

#include <array>
#include <cstdint>

namespace base {

/// The id of the running kernel, the same in all containers of a machine, and zeros; all zeros if the system does not
/// tell.
std::array<char, 40> boot_id();

/// The number of this process's network namespace, which abstract Unix sockets do not leave; 0 if the system does not
/// tell.
std::uint64_t network_namespace();

/// What tells this machine from others. Zeros if the system does not tell.
struct Machine {
  std::array<char, 40> boot{};  // boot_id(); copies of a virtual machine that was saved while it ran have one
  /// The address of the network adapter with the lowest number that has one: as long as it exists the same for all
  /// processes of the network namespace. Copies of a virtual machine differ.
  std::array<std::uint8_t, 8> hardware{};
  std::array<char, 64> host{};  // of use only if there is no boot id, as in some sandboxes
  /// Whether they are one, as far as they tell.
  friend bool operator==(const Machine& one, const Machine& other) {
    return one.boot == other.boot && one.hardware == other.hardware && (one.boot[0] != '\0' || one.host == other.host);
  }
};
Machine this_machine();

}  // namespace base
