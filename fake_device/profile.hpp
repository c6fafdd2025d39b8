// SPDX-License-Identifier: Apache-2.0
// The kinds of device that this process can be.
#pragma once

#include <cstdint>

#include "fake_device/effects.hpp"
#include "fake_device/layout.hpp"

namespace fake_device {

/// All that tells one kind from another. Immutable.
struct Profile {
  const char* name;
  std::uint16_t pci_device_id;
  unsigned groups;
  unsigned members;  // of a group, at most; and ports, if nobody says how many
  const Layout& layout;

  [[nodiscard]] Dimensions dimensions(unsigned ports) const {
    return {.groups = groups, .members = members, .ports = ports};
  }
};

/// 32 groups x 708 members: uapi/gba_regs.h.
const Profile& gba_profile();
/// 256 groups x 128 members: uapi/gba_switch_regs.h.
const Profile& switch_profile();

}  // namespace fake_device
