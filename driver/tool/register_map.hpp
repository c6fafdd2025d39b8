// SPDX-License-Identifier: Apache-2.0
// The registers of uapi/gba_regs.h and uapi/gba_switch_regs.h with their names, fields and meanings.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tool {

/// A name for a value of a field.
struct ValueName {
  std::uint64_t value;
  std::string_view name;
};

/// Bits of a register.
struct FieldSpec {
  std::string_view name;
  unsigned shift;
  std::uint64_t mask;  // unshifted
  std::string_view meaning = {};
  std::span<const ValueName> values = {};
};

/// How a register without fields is read.
enum class Kind {
  kNumber,
  kNanoseconds,  // 0: none
  kMembers,      // bit m of the array is member m
  kPorts,        // one port per member, lowest member first
};

enum class Access { kReadOnly, kReadWrite, kWriteOnly, kWriteOneToClear };

struct RegisterSpec {
  std::string_view name;
  std::uint64_t offset;  // in the block
  unsigned size;         // bytes of a word
  Access access;
  std::string_view meaning;
  unsigned words = 1;  // of an array
  std::span<const FieldSpec> fields = {};
  Kind kind = Kind::kNumber;
  unsigned bits = 1;      // of an entry of an array
  bool of_fault = false;  // says something only while FAULT is not 0
};

/// The registers of the whole device, at 0.
std::span<const RegisterSpec> device_registers();

/// The registers of a group.
struct GroupBlock {
  std::span<const RegisterSpec> registers;
  std::uint64_t first;  // where that of group 0 is
  std::uint64_t stride;

  [[nodiscard]] std::uint64_t at(std::uint32_t group) const { return first + stride * group; }
};
/// `map`: GBA_MAP_* of gba_device_info.
const GroupBlock& group_block(std::uint32_t map);

/// "RO", "RW", "WO", "R/W1C".
std::string_view name_of(Access access);
inline bool is_readable(const RegisterSpec& spec) {
  return spec.access != Access::kWriteOnly;
}
/// Of a field's value: its name, or the number.
std::string value_text(const FieldSpec& field, std::uint64_t value);

}  // namespace tool
