// SPDX-License-Identifier: Apache-2.0
#include "fake_device/profile.hpp"

#include "uapi/gba_switch_regs.h"

namespace fake_device {

const Profile& gba_profile() {
  static const Profile profile{.name = "gba",
                               .pci_device_id = GBA_PCI_DEVICE_ID,
                               .groups = GBA_MAX_GROUPS,
                               .members = GBA_MAX_MEMBERS,
                               .layout = gba_layout()};
  return profile;
}

const Profile& switch_profile() {
  static const Profile profile{.name = "switch",
                               .pci_device_id = GBA_PCI_DEVICE_ID_SWITCH,
                               .groups = GBA_SWITCH_MAX_GROUPS,
                               .members = GBA_SWITCH_MAX_MEMBERS,
                               .layout = switch_layout()};
  return profile;
}

}  // namespace fake_device
