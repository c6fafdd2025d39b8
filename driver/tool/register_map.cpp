// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/register_map.hpp"

#include <fmt/format.h>

#include <bit>

#include "gba/gba.h"
#include "uapi/gba_switch_regs.h"

namespace tool {
namespace {

/// One bit of the headers.
constexpr FieldSpec bit(std::string_view name, std::uint64_t value, std::string_view meaning) {
  return {.name = name, .shift = static_cast<unsigned>(std::countr_zero(value)), .mask = 1, .meaning = meaning};
}

// A field of the headers has two macros, so only a macro can name both.
#define GBA_TOOL_FIELD(text, macro) .name = text, .shift = macro##_SHIFT, .mask = macro##_MASK

constexpr ValueName kOpcodes[] = {{GBA_CMD_ALLOC, "ALLOC"},
                                  {GBA_CMD_FREE, "FREE"},
                                  {GBA_CMD_JOIN, "JOIN"},
                                  {GBA_CMD_LEAVE, "LEAVE"},
                                  {GBA_CMD_RECLAIM, "RECLAIM"}};
constexpr ValueName kCommandErrors[] = {{GBA_CMD_OK, "OK"},
                                        {GBA_CMD_ERROR_OPCODE, "OPCODE"},
                                        {GBA_CMD_ERROR_NO_FREE_GROUP, "NO_FREE_GROUP"},
                                        {GBA_CMD_ERROR_GROUP, "GROUP"},
                                        {GBA_CMD_ERROR_MEMBER, "MEMBER"},
                                        {GBA_CMD_ERROR_MEMBER_TAKEN, "MEMBER_TAKEN"},
                                        {GBA_CMD_ERROR_ALREADY_JOINED, "ALREADY_JOINED"},
                                        {GBA_CMD_ERROR_KEY, "KEY"},
                                        {GBA_CMD_ERROR_LOCKED_OUT, "LOCKED_OUT"},
                                        {GBA_CMD_ERROR_NOT_OWNER, "NOT_OWNER"},
                                        {GBA_CMD_ERROR_NOT_JOINED, "NOT_JOINED"},
                                        {GBA_CMD_ERROR_NOT_PRIVILEGED, "NOT_PRIVILEGED"},
                                        {GBA_CMD_ERROR_GROUP_LIMIT, "GROUP_LIMIT"}};
constexpr ValueName kFaultKinds[] = {{GBA_FAULT_NOT_JOINED, "NOT_JOINED"},
                                     {GBA_FAULT_NOT_ENABLED, "NOT_ENABLED"},
                                     {GBA_FAULT_BAD_ARRIVAL, "BAD_ARRIVAL"},
                                     {GBA_FAULT_PROTOCOL, "PROTOCOL"},
                                     {GBA_FAULT_DMA, "DMA"},
                                     {GBA_FAULT_BAD_ACCESS, "BAD_ACCESS"},
                                     {GBA_FAULT_BAD_CONFIG, "BAD_CONFIG"},
                                     {GBA_FAULT_NOT_PERMITTED, "NOT_PERMITTED"},
                                     {GBA_FAULT_KEY, "KEY"},
                                     {GBA_FAULT_TIMEOUT, "TIMEOUT"}};
constexpr ValueName kErrors[] = {{GBA_ERROR_NONE, "NONE"},       {GBA_ERROR_LINK_DOWN, "LINK_DOWN"},
                                 {GBA_ERROR_TIMEOUT, "TIMEOUT"}, {GBA_ERROR_DMA_FAULT, "DMA_FAULT"},
                                 {GBA_ERROR_RESET, "RESET"},     {GBA_ERROR_PROTOCOL, "PROTOCOL"},
                                 {GBA_ERROR_LEAVE, "LEAVE"}};
constexpr ValueName kNoMember[] = {{GBA_NO_MEMBER, "no member"}};

constexpr FieldSpec kVersionFields[] = {{GBA_TOOL_FIELD("MAJOR", GBA_VERSION_MAJOR_FIELD)},
                                        {GBA_TOOL_FIELD("MINOR", GBA_VERSION_MINOR_FIELD)}};
constexpr FieldSpec kCapsFields[] = {{GBA_TOOL_FIELD("GROUPS", GBA_CAPS_GROUPS), .meaning = "groups of the device"},
                                     {GBA_TOOL_FIELD("MEMBERS", GBA_CAPS_MEMBERS), .meaning = "members of a group"},
                                     bit("BAR_FLAGS", GBA_CAPS_BAR_FLAGS, "release flags may be in BAR4"),
                                     bit("WAKEUP", GBA_CAPS_WAKEUP, "the device is a process and may sleep"),
                                     bit("NOTIFY", GBA_CAPS_NOTIFY, "arrivals may ask for an interrupt"),
                                     bit("LINK_EVENTS", GBA_CAPS_LINK_EVENTS, "link changes raise the error vector"),
                                     bit("DEBUG", GBA_CAPS_DEBUG, "faults can be injected"),
                                     bit("GROUP_LIMIT", GBA_CAPS_GROUP_LIMIT, "a port may have GROUP_LIMIT groups")};
constexpr FieldSpec kDevControlFields[] = {bit("RESET", GBA_DEV_CONTROL_RESET, "1 resets the device; reads 0")};
constexpr FieldSpec kDevStatusFields[] = {
    bit("READY", GBA_DEV_STATUS_READY, "the device works"), bit("LINK_UP", GBA_DEV_STATUS_LINK_UP, "of this port"),
    bit("FATAL", GBA_DEV_STATUS_FATAL, "the device does not work until it is reset")};
constexpr FieldSpec kCommandFields[] = {{GBA_TOOL_FIELD("OPCODE", GBA_CMD_OPCODE), .values = kOpcodes},
                                        {GBA_TOOL_FIELD("GROUP", GBA_CMD_GROUP)},
                                        {GBA_TOOL_FIELD("MEMBER", GBA_CMD_MEMBER)},
                                        {GBA_TOOL_FIELD("KEY", GBA_CMD_KEY)}};
constexpr FieldSpec kCommandStatusFields[] = {
    {GBA_TOOL_FIELD("BUSY", GBA_CMD_STATUS_BUSY), .meaning = "the command still runs"},
    {GBA_TOOL_FIELD("ERROR", GBA_CMD_STATUS_ERROR), .values = kCommandErrors}};
constexpr FieldSpec kCommandResultFields[] = {
    {GBA_TOOL_FIELD("GROUP", GBA_CMD_RESULT_GROUP), .meaning = "that ALLOC has given"},
    {GBA_TOOL_FIELD("KEY", GBA_CMD_RESULT_KEY), .meaning = "that admits members"}};
constexpr FieldSpec kFaultFields[] = {
    bit("NOT_JOINED", GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED), "an arrival of a port that is not that member"),
    bit("NOT_ENABLED", GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED), "an arrival at a group that is not enabled"),
    bit("BAD_ARRIVAL", GBA_FAULT_BIT(GBA_FAULT_BAD_ARRIVAL), "an arrival word that is not valid"),
    bit("PROTOCOL", GBA_FAULT_BIT(GBA_FAULT_PROTOCOL), "an arrival more than one round ahead"),
    bit("DMA", GBA_FAULT_BIT(GBA_FAULT_DMA), "a release flag could not be stored"),
    bit("BAD_ACCESS", GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS), "an access with a wrong size, alignment or offset"),
    bit("BAD_CONFIG", GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG), "a register was given a value that it cannot hold"),
    bit("NOT_PERMITTED", GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED), "a write that this port may not make"),
    bit("KEY", GBA_FAULT_BIT(GBA_FAULT_KEY), "a wrong key for joining"),
    bit("TIMEOUT", GBA_FAULT_BIT(GBA_FAULT_TIMEOUT), "a round ran into TIMEOUT")};
constexpr FieldSpec kFaultInfoFields[] = {{GBA_TOOL_FIELD("KIND", GBA_FAULT_INFO_KIND), .values = kFaultKinds},
                                          {GBA_TOOL_FIELD("GROUP", GBA_FAULT_INFO_GROUP)},
                                          {GBA_TOOL_FIELD("MEMBER", GBA_FAULT_INFO_MEMBER), .values = kNoMember},
                                          {GBA_TOOL_FIELD("VALUE", GBA_FAULT_INFO_VALUE)}};
constexpr FieldSpec kControlFields[] = {bit("ENABLE", GBA_CONTROL_ENABLE, "arrivals are accepted"),
                                        bit("RESET", GBA_CONTROL_RESET, "1 puts the group into ERROR; reads 0"),
                                        bit("ARM", GBA_CONTROL_ARM, "stays enabled after a release"),
                                        bit("IRQ_EN", GBA_CONTROL_IRQ_EN, "arrivals may ask for an interrupt")};
constexpr FieldSpec kStatusFields[] = {bit("READY", GBA_STATUS_READY, "enabled, and no round is open"),
                                       bit("ACTIVE", GBA_STATUS_ACTIVE, "a round is open"),
                                       bit("COMPLETE", GBA_STATUS_COMPLETE, "a round was released, and none is open"),
                                       bit("ERROR", GBA_STATUS_ERROR, "until the group is freed")};
constexpr FieldSpec kErrorFields[] = {{GBA_TOOL_FIELD("CODE", GBA_ERROR_CODE_CODE), .values = kErrors},
                                      {GBA_TOOL_FIELD("MEMBER", GBA_ERROR_CODE_MEMBER), .values = kNoMember}};
#undef GBA_TOOL_FIELD

using enum Access;

constexpr RegisterSpec kDevice[] = {
    {"MAGIC", GBA_REG_MAGIC, 4, kReadOnly, "\"GBA1\""},
    {"VERSION", GBA_REG_VERSION, 4, kReadOnly, "of the register map", 1, kVersionFields},
    {"CAPS", GBA_REG_CAPS, 8, kReadOnly, "what the device has", 1, kCapsFields},
    {"DEV_CONTROL", GBA_REG_DEV_CONTROL, 8, kReadWrite, "of the privileged port", 1, kDevControlFields},
    {"DEV_STATUS", GBA_REG_DEV_STATUS, 8, kReadOnly, "", 1, kDevStatusFields},
    {"PORT_ID", GBA_REG_PORT_ID, 4, kReadOnly, "this port of the switch"},
    {"CMD", GBA_REG_CMD, 8, kWriteOnly, "runs a command", 1, kCommandFields},
    {"CMD_STATUS", GBA_REG_CMD_STATUS, 8, kReadOnly, "of this port's last command", 1, kCommandStatusFields},
    {"CMD_RESULT", GBA_REG_CMD_RESULT, 8, kReadOnly, "of this port's last command", 1, kCommandResultFields},
    {"FAULT", GBA_REG_FAULT, 8, kWriteOneToClear, "of this port", 1, kFaultFields},
    {"FAULT_INFO", GBA_REG_FAULT_INFO, 8, kReadOnly, "of the first fault since FAULT was clear", 1, kFaultInfoFields,
     Kind::kNumber, 1, true},
    {"FAULT_ADDR",
     GBA_REG_FAULT_ADDR,
     8,
     kReadOnly,
     "of the first fault since FAULT was clear",
     1,
     {},
     Kind::kNumber,
     1,
     true},
    {"KICK", GBA_REG_KICK, 8, kWriteOnly, "wakes a device that sleeps"},
    {"GROUP_LIMIT", GBA_REG_GROUP_LIMIT, 8, kReadWrite, "groups that an ordinary port may have"},
    {"GROUPS_HELD", GBA_REG_GROUPS_HELD, 8, kReadOnly, "groups that count for this port"},
    {"COUNTER_ARRIVALS", GBA_REG_COUNTER_ARRIVALS, 8, kReadOnly, "accepted, stale ones included"},
    {"COUNTER_RELEASES", GBA_REG_COUNTER_RELEASES, 8, kReadOnly, "rounds released"},
    {"COUNTER_STALE", GBA_REG_COUNTER_STALE, 8, kReadOnly, "arrivals answered with an earlier release"},
    {"COUNTER_REJECTED", GBA_REG_COUNTER_REJECTED, 8, kReadOnly, "arrivals refused"},
    {"COUNTER_DMA_FAULTS", GBA_REG_COUNTER_DMA_FAULTS, 8, kReadOnly, "flag stores that failed"},
    {"COUNTER_TIMEOUTS", GBA_REG_COUNTER_TIMEOUTS, 8, kReadOnly, "rounds that ran into TIMEOUT"},
    {"COUNTER_RESETS", GBA_REG_COUNTER_RESETS, 8, kReadOnly, "group and device resets"},
    {"COUNTER_ERRORS", GBA_REG_COUNTER_ERRORS, 8, kReadOnly, "groups that entered ERROR"},
    {"COUNTER_INTERRUPTS", GBA_REG_COUNTER_INTERRUPTS, 8, kReadOnly, "interrupt vectors raised"},
    {"COUNTER_WAKEUPS", GBA_REG_COUNTER_WAKEUPS, 8, kReadOnly, "times that the device slept and was woken"},
};

constexpr RegisterSpec kGroup[] = {
    {"ID", GBA_GROUP_ID, 4, kReadOnly, ""},
    {"MEMBER_COUNT", GBA_GROUP_MEMBER_COUNT, 4, kReadWrite, ""},
    {"ARRIVAL_COUNT", GBA_GROUP_ARRIVAL_COUNT, 4, kReadOnly, "in the open round"},
    {"MEMBER_MASK", GBA_GROUP_MEMBER_MASK, 8, kReadWrite, "", GBA_MASK_WORDS, {}, Kind::kMembers},
    {"ARRIVED_MASK", GBA_GROUP_ARRIVED_MASK, 8, kReadOnly, "in the open round", GBA_MASK_WORDS, {}, Kind::kMembers},
    {"CONTROL", GBA_GROUP_CONTROL, 8, kReadWrite, "", 1, kControlFields},
    {"STATUS", GBA_GROUP_STATUS, 8, kReadOnly, "", 1, kStatusFields},
    {"SEQUENCE", GBA_GROUP_SEQUENCE, 8, kReadWrite, "last released"},
    {"ERROR_CODE", GBA_GROUP_ERROR_CODE, 8, kReadOnly, "", 1, kErrorFields},
    {"TIMEOUT", GBA_GROUP_TIMEOUT, 8, kReadWrite, "of a round", 1, {}, Kind::kNanoseconds},
    {"ROUND_AGE", GBA_GROUP_ROUND_AGE, 8, kReadOnly, "of the open round", 1, {}, Kind::kNanoseconds},
    {"RELEASE_ADDR", GBA_GROUP_RELEASE_ADDR, 8, kWriteOnly, "where a member's release flag is", GBA_MAX_MEMBERS},
    {"MEMBER_PORT",
     GBA_GROUP_MEMBER_PORT,
     8,
     kReadOnly,
     "",
     GBA_MEMBER_PORT_WORDS,
     {},
     Kind::kPorts,
     GBA_MEMBER_PORT_BITS},
};

constexpr RegisterSpec kSwitchGroup[] = {
    {"NETWORK_ADDR", GBA_SWITCH_NETWORK_ADDR, 8, kReadWrite, "which the device only keeps"},
    {"GROUP_ID", GBA_SWITCH_GROUP_ID, 8, kReadOnly, ""},
    {"MEMBER_MASK", GBA_SWITCH_MEMBER_MASK, 8, kReadWrite, "", GBA_SWITCH_MASK_WORDS, {}, Kind::kMembers},
    {"MEMBER_COUNT", GBA_SWITCH_MEMBER_COUNT, 8, kReadWrite, ""},
    {"CONTROL", GBA_SWITCH_CONTROL, 8, kReadWrite, "", 1, kControlFields},
    {"STATUS", GBA_SWITCH_STATUS, 8, kReadOnly, "", 1, kStatusFields},
    {"ARRIVED_MASK",
     GBA_SWITCH_ARRIVED_MASK,
     8,
     kReadOnly,
     "in the open round",
     GBA_SWITCH_MASK_WORDS,
     {},
     Kind::kMembers},
    {"LOCAL_MEMBER_ID", GBA_SWITCH_LOCAL_MEMBER_ID, 8, kReadOnly, "which member this port is; all ones: none"},
    {"RELEASE_ADDR", GBA_SWITCH_RELEASE_ADDR, 8, kWriteOnly, "where this port's release flag is"},
    {"ARRIVAL_ADDR", GBA_SWITCH_ARRIVAL_ADDR, 8, kReadOnly, "the doorbell slot in BAR2"},
    {"SEQUENCE", GBA_SWITCH_SEQUENCE, 8, kReadWrite, "last released"},
    {"ERROR_CODE", GBA_SWITCH_ERROR_CODE, 8, kReadOnly, "", 1, kErrorFields},
    {"TIMEOUT", GBA_SWITCH_TIMEOUT, 8, kReadWrite, "of a round", 1, {}, Kind::kNanoseconds},
    {"ROUND_AGE", GBA_SWITCH_ROUND_AGE, 8, kReadOnly, "of the open round", 1, {}, Kind::kNanoseconds},
    {"MEMBER_PORT",
     GBA_SWITCH_MEMBER_PORT,
     8,
     kReadOnly,
     "",
     GBA_SWITCH_MEMBER_PORT_WORDS,
     {},
     Kind::kPorts,
     GBA_SWITCH_MEMBER_PORT_BITS},
};

constexpr GroupBlock kGroupBlock{.registers = kGroup, .first = GBA_GROUPS_OFFSET, .stride = GBA_GROUP_STRIDE};
constexpr GroupBlock kSwitchGroupBlock{
    .registers = kSwitchGroup, .first = GBA_SWITCH_GROUPS_OFFSET, .stride = GBA_SWITCH_GROUP_STRIDE};

}  // namespace

std::span<const RegisterSpec> device_registers() {
  return kDevice;
}

const GroupBlock& group_block(std::uint32_t map) {
  return map == GBA_MAP_SWITCH ? kSwitchGroupBlock : kGroupBlock;
}

std::string_view name_of(Access access) {
  switch (access) {
    case Access::kReadOnly:
      return "RO";
    case Access::kReadWrite:
      return "RW";
    case Access::kWriteOnly:
      return "WO";
    case Access::kWriteOneToClear:
      return "R/W1C";
  }
  return "";
}

std::string value_text(const FieldSpec& field, std::uint64_t value) {
  for (const auto& known : field.values) {
    if (known.value == value) {
      return std::string(known.name);
    }
  }
  return fmt::format("{}", value);
}

}  // namespace tool
