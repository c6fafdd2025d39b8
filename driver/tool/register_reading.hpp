// SPDX-License-Identifier: Apache-2.0
// Reads the registers of a device, and says what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/tool/device.hpp"
#include "driver/tool/register_map.hpp"

namespace tool {

/// A register as it was read. A register that can only be written has no words.
struct Reading {
  const RegisterSpec* spec;
  std::uint64_t offset;
  std::vector<std::uint64_t> words;
  /// False for the registers that describe a fault while there is no fault: their 0 would read as a kind of fault.
  bool has_meaning = true;
};

/// The registers of "device" or of "group 3".
struct Block {
  std::string name;
  std::vector<Reading> registers;
};

Result<std::uint64_t> read_word(gba_device* device, std::uint64_t offset, unsigned size);
/// The registers of `groups`; if it is empty, those of the device and of the groups in use.
Result<std::vector<Block>> read_blocks(gba_device* device, const gba_device_info& info,
                                       std::vector<std::uint32_t> groups);

/// With all digits of a register of `size` bytes.
std::string hex(std::uint64_t value, unsigned size);
/// A table: a line per register and per field.
std::string to_text(const Block& block);
Json to_json(const Reading& reading);

}  // namespace tool
