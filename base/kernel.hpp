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

}  // namespace base
