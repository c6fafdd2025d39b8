// SPDX-License-Identifier: Apache-2.0
// The kinds of device that this process can be: sizes, ids, and which register stands where.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fake_device/effects.hpp"

namespace fake_device {

enum class Register : std::uint8_t {
  kMagic,
  kVersion,
  kCaps,
  kDevControl,
  kDevStatus,
  kPortId,
  kCmd,
  kCmdStatus,
  kCmdResult,
  kFault,
  kFaultInfo,
  kFaultAddr,
  kKick,
  kGroupLimit,
  kGroupsHeld,
  kCounter,
  kGroupId,  // from here on, of a group
  kMemberCount,
  kArrivalCount,
  kMemberMask,
  kArrivedMask,
  kControl,
  kStatus,
  kSequence,
  kErrorCode,
  kTimeout,
  kReleaseAddr,
  kNetworkAddr,
  kLocalMemberId,     // of the port that asks
  kLocalReleaseAddr,  // likewise
  kArrivalAddr,
  kRoundAge,
  kMemberPorts16,  // of several members, so many bits each
  kMemberPorts8,
};

/// `count` registers of `size` bytes each, next to each other.
struct RegisterEntry {
  std::uint32_t offset;
  std::uint32_t size;
  std::uint32_t count;
  Register id;
};

/// One register, found by its offset.
struct RegisterRef {
  Register id;
  unsigned group;  // of a group's register
  unsigned index;  // of a register that stands in a row of them
};

/// A register map as a table. Immutable.
class Layout {
 public:
  constexpr Layout(std::span<const RegisterEntry> device, std::span<const RegisterEntry> group, std::uint64_t base,
                   std::uint64_t stride, unsigned groups)
      : device_(device), group_(group), base_(base), stride_(stride), groups_(groups) {}

  /// The register that an access of `size` bytes at `offset` hits exactly, if there is one: uapi rule 1.
  [[nodiscard]] std::optional<RegisterRef> find(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::span<const RegisterEntry> device_;
  std::span<const RegisterEntry> group_;
  std::uint64_t base_;
  std::uint64_t stride_;
  unsigned groups_;
};

/// The 32 x 708 map of uapi/gba_regs.h.
const Layout& gba_layout();
/// The 256 x 128 map of uapi/gba_switch_regs.h.
const Layout& switch_layout();

/// All that tells one kind from another. Immutable.
struct Profile {
  const char* name;
  std::uint16_t pci_device_id;
  unsigned groups;
  unsigned members;     // of a group, at most; also the default number of ports
  unsigned most_ports;  // MEMBER_PORT has a number for each, and for the privileged one
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
