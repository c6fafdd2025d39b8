// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/register_reading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace tool {

Result<std::uint64_t> read_word(gba_device* device, std::uint64_t offset, unsigned size) {
  std::uint64_t value = 0;
  if (const int error = gba_device_read_register(device, offset, size, &value); error != 0) {
    return failed(error);
  }
  return value;
}

std::string hex(std::uint64_t value, unsigned size) {
  return fmt::format("{:#0{}x}", value, 2 + 2 * size);
}

namespace {

Result<Reading> read_register(gba_device* device, const RegisterSpec& spec, std::uint64_t block) {
  Reading reading{.spec = &spec, .offset = block + spec.offset, .words = {}};
  for (unsigned word = 0; is_readable(spec) && word < spec.words; ++word) {
    const auto value = read_word(device, reading.offset + std::uint64_t{spec.size} * word, spec.size);
    if (!value) {
      return value.error();
    }
    reading.words.push_back(*value);
  }
  return reading;
}

const Reading* find_register(const Block& block, std::string_view name) {
  const auto found = std::ranges::find(block.registers, name, [](const Reading& one) { return one.spec->name; });
  return found == block.registers.end() ? nullptr : &*found;
}

Result<Block> read_block(gba_device* device, std::string name, std::span<const RegisterSpec> registers,
                         std::uint64_t offset) {
  Block block{.name = std::move(name), .registers = {}};
  for (const auto& spec : registers) {
    auto reading = read_register(device, spec, offset);
    if (!reading) {
      return reading.error();
    }
    const Reading* const fault = find_register(block, "FAULT");
    reading->has_meaning = !spec.of_fault || (fault != nullptr && fault->words.front() != 0);
    block.registers.push_back(*std::move(reading));
  }
  return block;
}

Result<bool> is_in_use(gba_device* device, std::uint32_t group) {
  gba_group_status status{};
  if (const int error = gba_group_get_status(device, group, &status); error != 0) {
    return failed(error);
  }
  return status.member_count != 0;
}

Result<std::vector<std::uint32_t>> groups_in_use(gba_device* device, const gba_device_info& info) {
  std::vector<std::uint32_t> groups;
  for (std::uint32_t group = 0; group < info.groups; ++group) {
    const auto used = is_in_use(device, group);
    if (!used) {
      return used.error();
    }
    if (*used) {
      groups.push_back(group);
    }
  }
  return groups;
}

}  // namespace

Result<std::vector<Block>> read_blocks(gba_device* device, const gba_device_info& info,
                                       std::vector<std::uint32_t> groups) {
  std::vector<Block> blocks;
  if (groups.empty()) {
    auto block = read_block(device, "device", device_registers(), 0);
    if (!block) {
      return block.error();
    }
    blocks.push_back(*std::move(block));
    auto used = groups_in_use(device, info);
    if (!used) {
      return used.error();
    }
    groups = *std::move(used);
  }
  const GroupBlock& map = group_block(info.map);
  for (const std::uint32_t group : groups) {
    auto block = read_block(device, fmt::format("group {}", group), map.registers, map.at(group));
    if (!block) {
      return block.error();
    }
    blocks.push_back(*std::move(block));
  }
  return blocks;
}

namespace {

/// Entry `index` of an array whose entries have spec.bits bits.
std::uint64_t entry_of(const Reading& reading, unsigned index) {
  const unsigned bits = reading.spec->bits;
  const unsigned at = index * bits;
  return reading.words[at / 64] >> at % 64 & ((std::uint64_t{1} << bits) - 1);
}

unsigned entries_of(const Reading& reading) {
  return static_cast<unsigned>(reading.words.size()) * 64 / reading.spec->bits;
}

std::vector<unsigned> members_in(const Reading& reading) {
  std::vector<unsigned> members;
  for (unsigned member = 0; member < entries_of(reading); ++member) {
    if (entry_of(reading, member) != 0) {
      members.push_back(member);
    }
  }
  return members;
}

/// Members with their ports, for those that have one.
std::vector<std::pair<unsigned, std::uint64_t>> ports_in(const Reading& reading) {
  const std::uint64_t none = (std::uint64_t{1} << reading.spec->bits) - 1;
  std::vector<std::pair<unsigned, std::uint64_t>> ports;
  for (unsigned member = 0; member < entries_of(reading); ++member) {
    if (entry_of(reading, member) != none) {
      ports.emplace_back(member, entry_of(reading, member));
    }
  }
  return ports;
}

/// "0-3, 7".
std::string ranges(const std::vector<unsigned>& members) {
  std::vector<std::string> texts;
  for (std::size_t first = 0; first < members.size();) {
    std::size_t last = first;
    while (last + 1 < members.size() && members[last + 1] == members[last] + 1) {
      ++last;
    }
    texts.push_back(first == last ? fmt::format("{}", members[first])
                                  : fmt::format("{}-{}", members[first], members[last]));
    first = last + 1;
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string ports_text(const Reading& reading) {
  constexpr std::size_t kMost = 8;
  const auto ports = ports_in(reading);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(ports.size(), kMost); ++i) {
    texts.push_back(fmt::format("member {}: port {}", ports[i].first, ports[i].second));
  }
  if (ports.size() > kMost) {
    texts.push_back(fmt::format("and {} more", ports.size() - kMost));
  }
  return texts.empty() ? "none has joined" : fmt::format("{}", fmt::join(texts, ", "));
}

/// What the value of a register without fields means, with the register's own meaning.
std::string explained(const Reading& reading) {
  const RegisterSpec& spec = *reading.spec;
  std::string text;
  if (!reading.words.empty()) {
    switch (spec.kind) {
      case Kind::kNumber:
        text = !spec.fields.empty() || spec.name == "MAGIC" ? ""
               : reading.has_meaning                        ? fmt::format("{}", reading.words[0])
                                                            : "-";
        break;
      case Kind::kNanoseconds:
        text = reading.words[0] == 0 ? "none" : duration(reading.words[0]);
        break;
      case Kind::kMembers:
        text = ranges(members_in(reading));
        break;
      case Kind::kPorts:
        text = ports_text(reading);
        break;
    }
  }
  return text + (text.empty() || spec.meaning.empty() ? "" : "; ") + std::string(spec.meaning);
}

std::string name_of(const Reading& reading) {
  const RegisterSpec& spec = *reading.spec;
  return spec.words == 1 ? std::string(spec.name) : fmt::format("{}[{}]", spec.name, spec.words);
}

std::string value_of(const Reading& reading) {
  if (reading.words.size() == 1) {
    return hex(reading.words[0], reading.spec->size);
  }
  return reading.words.empty() ? "(write-only)" : "";
}

}  // namespace

std::string to_text(const Block& block) {
  std::vector<std::vector<std::string>> rows{{"OFFSET", "REGISTER", "ACCESS", "VALUE", "MEANING"}};
  for (const auto& reading : block.registers) {
    rows.push_back({hex(reading.offset, 3), name_of(reading), std::string(name_of(reading.spec->access)),
                    value_of(reading), explained(reading)});
    for (const auto& field : reading.spec->fields) {
      if (!reading.words.empty()) {
        const std::uint64_t value = reading.words[0] >> field.shift & field.mask;
        rows.push_back({"", fmt::format("  {}", field.name), "", reading.has_meaning ? value_text(field, value) : "-",
                        std::string(field.meaning)});
      }
    }
  }
  return fmt::format("{}\n{}", block.name, table(rows));
}

Json to_json(const Reading& reading) {
  const RegisterSpec& spec = *reading.spec;
  Json json{{"name", spec.name},
            {"offset", hex(reading.offset, 3)},
            {"size", spec.size},
            {"words", spec.words},
            {"access", name_of(spec.access)}};
  // As text: a reader whose numbers are floating point would lose bits.
  Json values = Json::array();
  for (const std::uint64_t word : reading.words) {
    values.push_back(hex(word, spec.size));
  }
  if (spec.words == 1) {
    json["value"] = values.empty() ? Json() : values[0];
  } else {
    json["values"] = values;
  }
  if (reading.words.empty()) {
    return json;
  }
  for (const auto& field : spec.fields) {
    const std::uint64_t value = reading.words[0] >> field.shift & field.mask;
    json["fields"][std::string(field.name)] = value;
    if (!field.values.empty()) {
      json["names"][std::string(field.name)] = reading.has_meaning ? Json(value_text(field, value)) : Json();
    }
  }
  if (spec.kind == Kind::kMembers) {
    json["members"] = members_in(reading);
  }
  if (spec.kind == Kind::kPorts) {
    json["ports"] = Json::array();
    for (const auto& [member, port] : ports_in(reading)) {
      json["ports"].push_back({{"member", member}, {"port", port}});
    }
  }
  return json;
}

}  // namespace tool
