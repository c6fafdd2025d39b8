// SPDX-License-Identifier: Apache-2.0
// The register maps of the devices that this library drives. All that differs between them is here.
#pragma once

#include <cstdint>

#include "driver/pci.hpp"
#include "uapi/gba_switch_regs.h"

namespace gba {

/// The largest of all profiles.
inline constexpr std::uint32_t kMaxGroups = GBA_SWITCH_MAX_GROUPS;
inline constexpr std::uint32_t kMaxMembers = GBA_MAX_MEMBERS;

/// Where a group's registers stand: offsets within its block.
struct GroupMap {
  std::uint64_t first;  // block 0 in BAR0
  std::uint64_t stride;
  std::uint64_t member_mask;
  std::uint64_t arrived_mask;
  std::uint64_t control;
  std::uint64_t status;
  std::uint64_t sequence;
  std::uint64_t error_code;
  std::uint64_t timeout;
  std::uint64_t round_age;
  std::uint64_t member_port;
  std::uint64_t member_count;
  unsigned member_count_bytes;
  unsigned member_port_bits;  // of a 64-bit word, for each member
  std::uint64_t release_address;
  std::uint64_t release_address_stride;  // 0: the port has one register of it, its own

  [[nodiscard]] std::uint64_t block(std::uint32_t group) const { return first + stride * group; }
  [[nodiscard]] std::uint64_t release_address_of(std::uint32_t group, std::uint32_t member) const {
    return block(group) + release_address + release_address_stride * member;
  }
};

struct Profile {
  const char* name;
  std::uint32_t id;      // GBA_MAP_* of gba.h
  std::uint32_t groups;  // at most; CAPS says how many there are
  std::uint32_t members;
  GroupMap map;

  [[nodiscard]] std::uint32_t mask_words() const { return (members + 63) / 64; }
};

/// The one that goes with a PCI id. An id that GBA_PCI_ID names has the 32 x 708 map.
const Profile& profile_of(PciId id);

}  // namespace gba
