// SPDX-License-Identifier: Apache-2.0
// gba regs: the registers of a device, decoded; and, if confirmed, writes to them.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number.hpp"
#include "driver/tool/device.hpp"
#include "driver/tool/register_reading.hpp"
#include "uapi/gba_regs.h"

namespace tool {
namespace {

struct RegsArguments {
  std::vector<std::uint32_t> groups;  // empty: the device, and the groups in use
  std::vector<std::string> writes;    // NAME=VALUE
  bool confirmed = false;
};

void print_blocks(const Invocation& invocation, const gba_device_info& info, const std::vector<Block>& blocks) {
  const std::string path = static_cast<const char*>(info.path);
  if (!invocation.json) {
    print_text(fmt::format("{}, port {}\n", path, info.port));
    for (const auto& block : blocks) {
      print_text("\n" + to_text(block));
    }
    return;
  }
  Json all = Json::array();
  for (const auto& block : blocks) {
    Json registers = Json::array();
    for (const auto& reading : block.registers) {
      registers.push_back(to_json(reading));
    }
    all.push_back({{"block", block.name}, {"registers", registers}});
  }
  print_json(Json{
      {"device", path}, {"port", info.port}, {"map", info.map == GBA_MAP_SWITCH ? "switch" : "gba"}, {"blocks", all}});
}

// ---- Writing ----

struct Write {
  const RegisterSpec* spec;
  std::uint64_t offset;
  std::uint64_t value;
  std::string name;  // "group 3: TIMEOUT"
};

Failure invalid_write(const std::string& text) {
  return {-EINVAL, "gba: --write " + text, kUsage};
}

/// The parts of NAME=VALUE or NAME[WORD]=VALUE.
struct Parts {
  std::string name;
  std::uint64_t word = 0;
  std::uint64_t value = 0;
};

bool split(const std::string& text, Parts& parts) {
  const auto equals = text.find('=');
  const auto value =
      equals != std::string::npos ? base::number_of_either_kind<std::uint64_t>(text.substr(equals + 1)) : std::nullopt;
  if (!value) {
    return false;
  }
  const std::string left = text.substr(0, equals);
  const auto bracket = left.find('[');
  parts.name = left.substr(0, bracket);
  parts.value = *value;
  if (bracket == std::string::npos) {
    return true;
  }
  const auto word = base::number_of_either_kind<std::uint64_t>(left.substr(bracket + 1, left.size() - bracket - 2));
  parts.word = word.value_or(0);
  return left.ends_with(']') && word;
}

/// NAME=VALUE or NAME[WORD]=VALUE, of the device or, if --group names one, of that group.
Result<Write> parse(const std::string& text, const gba_device_info& info, const RegsArguments& arguments) {
  Parts parts;
  if (!split(text, parts)) {
    return invalid_write(text + ": NAME=VALUE or NAME[WORD]=VALUE is wanted, with decimal or 0x numbers");
  }
  const bool of_group = !arguments.groups.empty();
  const GroupBlock& map = group_block(info.map);
  const auto registers = of_group ? map.registers : device_registers();
  const auto found =
      std::find_if(registers.begin(), registers.end(), [&](const auto& s) { return s.name == parts.name; });
  if (found == registers.end()) {
    return invalid_write(
        fmt::format("{}: no register {} {}", text, parts.name,
                    of_group ? "of a group" : "of the device; --group N is for the registers of group N"));
  }
  if (found->access == Access::kReadOnly) {
    return invalid_write(fmt::format("{}: {} is read-only", text, parts.name));
  }
  if (parts.word >= found->words || (found->size == 4 && parts.value > UINT32_MAX)) {
    return invalid_write(
        fmt::format("{}: {} has {} of {} bytes", text, parts.name, count(found->words, "word"), found->size));
  }
  const std::string written = text.substr(0, text.find('='));
  const std::uint64_t block = of_group ? map.at(arguments.groups[0]) : 0;
  return Write{.spec = &*found,
               .offset = block + found->offset + parts.word * found->size,
               .value = parts.value,
               .name = of_group ? fmt::format("group {}: {}", arguments.groups[0], written) : written};
}

/// The faults of this port that stand for a write that was dropped.
Result<std::uint64_t> refusals(gba_device* device) {
  auto fault = read_word(device, GBA_REG_FAULT, 8);
  if (!fault) {
    return fault;
  }
  return *fault & (GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG) | GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED) |
                   GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
}

Result<Json> execute(gba_device* device, const Write& write) {
  const unsigned size = write.spec->size;
  const auto old = is_readable(*write.spec) ? read_word(device, write.offset, size) : Result<std::uint64_t>(0);
  const auto before = refusals(device);
  if (!old || !before) {
    return old ? before.error() : old.error();
  }
  if (const int error = gba_device_write_register(device, write.offset, size, write.value); error != 0) {
    return failed(error);
  }
  const auto now = is_readable(*write.spec) ? read_word(device, write.offset, size) : Result<std::uint64_t>(0);
  const auto after = refusals(device);
  if (!now || !after) {
    return now ? after.error() : now.error();
  }
  if ((*after & ~*before) != 0) {
    return Failure{-EPERM,
                   fmt::format("gba: {}: the device dropped the write of {}, and FAULT is {}: this port may not "
                               "write it (it is the owner's, or the privileged port's), or it cannot have "
                               "that value now",
                               write.name, hex(write.value, size), hex(*after, 8))};
  }
  return Json{{"register", write.name},
              {"offset", hex(write.offset, 3)},
              {"written", hex(write.value, size)},
              {"before", is_readable(*write.spec) ? Json(hex(*old, size)) : Json()},
              {"after", is_readable(*write.spec) ? Json(hex(*now, size)) : Json()}};
}

constexpr const char* kWarning =
    "a write can end every barrier of this port, or with the privileged port of all ports, and libgba does not know of "
    "it";

int write_all(const Invocation& invocation, const RegsArguments& arguments, gba_device* device,
              const gba_device_info& info) {
  if (arguments.groups.size() > 1) {
    return report(invocation, invalid_write("writes to the device or to one group, so give --group once"));
  }
  std::vector<Write> writes;
  for (const auto& text : arguments.writes) {
    auto write = parse(text, info, arguments);
    if (!write) {
      return report(invocation, write.error());
    }
    writes.push_back(*std::move(write));
  }
  if (!arguments.confirmed) {
    return report(invocation,
                  {-ECANCELED, fmt::format("gba: nothing is written: {}; --yes does it", kWarning), kUsage});
  }
  std::fprintf(stderr, "gba: warning: %s\n", kWarning);
  Json done = Json::array();
  for (const auto& write : writes) {
    const auto result = execute(device, write);
    if (!result) {
      return report(invocation, result.error());
    }
    done.push_back(*result);
    if (!invocation.json) {
      const auto shown = [&](const char* name) {
        return (*result)[name].is_null() ? std::string("(write-only)") : (*result)[name].get<std::string>();
      };
      print_text(fmt::format("{}: {} -> {}\n", write.name, shown("before"), shown("after")));
    }
  }
  if (invocation.json) {
    print_json(Json{{"device", static_cast<const char*>(info.path)}, {"writes", done}});
  }
  return kDone;
}

int regs(const Invocation& invocation, const RegsArguments& arguments, gba_device* device,
         const gba_device_info& info) {
  for (const std::uint32_t group : arguments.groups) {
    if (group >= info.groups) {
      return report(
          invocation,
          {-EINVAL, fmt::format("gba: --group {}: the device has groups 0 to {}", group, info.groups - 1), kUsage});
    }
  }
  if (!arguments.writes.empty()) {
    return write_all(invocation, arguments, device, info);
  }
  const auto blocks = read_blocks(device, info, arguments.groups);
  if (!blocks) {
    return report(invocation, blocks.error());
  }
  print_blocks(invocation, info, *blocks);
  return kDone;
}

}  // namespace

void declare_regs(CLI::App& app, Invocation& invocation) {
  const auto arguments = std::make_shared<RegsArguments>();
  auto command = declare(
      app, invocation, "regs", "the registers of a device, with their fields and meanings",
      on_device(invocation, GBA_OPEN_FATAL, [&invocation, arguments](gba_device* device, const gba_device_info& info) {
        return regs(invocation, *arguments, device, info);
      }));
  take_device(command, invocation);
  command.list("--group", arguments->groups,
               "the registers of this group (default: of the device, and of groups in use)", "N");
  command.list("--write", arguments->writes, "write a register of the device or of --group; needs --yes", "NAME=VALUE");
  command.flag("--yes", arguments->confirmed, "yes, write, although that can end barriers");
}

}  // namespace tool
