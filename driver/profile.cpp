// SPDX-License-Identifier: Apache-2.0
#include "driver/profile.hpp"

#include "gba/gba.h"
#include "uapi/gba_regs.h"

namespace gba {

namespace {

constexpr Profile kGba{.name = "gba",
                       .id = GBA_MAP_GBA,
                       .groups = GBA_MAX_GROUPS,
                       .members = GBA_MAX_MEMBERS,
                       .map = {.first = GBA_GROUPS_OFFSET,
                               .stride = GBA_GROUP_STRIDE,
                               .member_mask = GBA_GROUP_MEMBER_MASK,
                               .arrived_mask = GBA_GROUP_ARRIVED_MASK,
                               .control = GBA_GROUP_CONTROL,
                               .status = GBA_GROUP_STATUS,
                               .sequence = GBA_GROUP_SEQUENCE,
                               .error_code = GBA_GROUP_ERROR_CODE,
                               .timeout = GBA_GROUP_TIMEOUT,
                               .round_age = GBA_GROUP_ROUND_AGE,
                               .member_port = GBA_GROUP_MEMBER_PORT,
                               .member_count = GBA_GROUP_MEMBER_COUNT,
                               .member_count_bytes = 4,
                               .member_port_bits = GBA_MEMBER_PORT_BITS,
                               .release_address = GBA_GROUP_RELEASE_ADDR,
                               .release_address_stride = 8}};

constexpr Profile kSwitch{.name = "switch",
                          .id = GBA_MAP_SWITCH,
                          .groups = GBA_SWITCH_MAX_GROUPS,
                          .members = GBA_SWITCH_MAX_MEMBERS,
                          .map = {.first = GBA_SWITCH_GROUPS_OFFSET,
                                  .stride = GBA_SWITCH_GROUP_STRIDE,
                                  .member_mask = GBA_SWITCH_MEMBER_MASK,
                                  .arrived_mask = GBA_SWITCH_ARRIVED_MASK,
                                  .control = GBA_SWITCH_CONTROL,
                                  .status = GBA_SWITCH_STATUS,
                                  .sequence = GBA_SWITCH_SEQUENCE,
                                  .error_code = GBA_SWITCH_ERROR_CODE,
                                  .timeout = GBA_SWITCH_TIMEOUT,
                                  .round_age = GBA_SWITCH_ROUND_AGE,
                                  .member_port = GBA_SWITCH_MEMBER_PORT,
                                  .member_count = GBA_SWITCH_MEMBER_COUNT,
                                  .member_count_bytes = 8,
                                  .member_port_bits = GBA_SWITCH_MEMBER_PORT_BITS,
                                  .release_address = GBA_SWITCH_RELEASE_ADDR,
                                  .release_address_stride = 0}};

static_assert(kGba.groups <= kMaxGroups && kSwitch.members <= kMaxMembers);

}  // namespace

const Profile& profile_of(PciId id) {
  return id.device == GBA_PCI_DEVICE_ID_SWITCH ? kSwitch : kGba;
}

}  // namespace gba
