// SPDX-License-Identifier: Apache-2.0
#include "fake_device/injection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/number.hpp"
#include "uapi/gba_regs.h"

namespace fake_device {
namespace {

enum Key : unsigned {
  kGroup = 1U << 0,
  kMember = 1U << 1,
  kPort = 1U << 2,
  kCount = 1U << 3,
  kAfter = 1U << 4,
  kTime = 1U << 5,
  kSpread = 1U << 6,
  kValue = 1U << 7,
  kAt = 1U << 8,
};
constexpr unsigned kWhere = kGroup | kMember | kPort;
constexpr unsigned kOccasions = kWhere | kCount | kAfter;

struct Form {
  unsigned kind;
  const char* name;
  unsigned needs;
  unsigned takes;
};

constexpr std::array kForms{
    Form{GBA_INJECT_DROP_RELEASE, "drop-release", 0, kOccasions},
    Form{GBA_INJECT_DELAY_RELEASE, "delay-release", kTime, kOccasions},
    Form{GBA_INJECT_DUPLICATE_RELEASE, "duplicate-release", 0, kOccasions},
    Form{GBA_INJECT_DROP_INTERRUPT, "drop-interrupt", 0, kGroup | kPort | kCount | kAfter},
    Form{GBA_INJECT_DROP_ARRIVAL, "drop-arrival", 0, kOccasions},
    Form{GBA_INJECT_DMA_FAULT, "dma-fault", 0, kOccasions},
    Form{GBA_INJECT_STALL_GROUP, "stall-group", kGroup, kTime},
    Form{GBA_INJECT_FORGE_ARRIVAL, "forge-arrival", kGroup | kMember | kValue, 0},
    Form{GBA_INJECT_START_SEQUENCE, "start-sequence", kValue, 0},
    Form{GBA_INJECT_LATENCY, "latency", kTime, kSpread},
    Form{GBA_INJECT_LINK_DOWN, "link-down", kPort, 0},
    Form{GBA_INJECT_LINK_UP, "link-up", kPort, 0},
    Form{GBA_INJECT_RESET_GROUP, "reset-group", kGroup, 0},
    Form{GBA_INJECT_RESET_DEVICE, "reset-device", 0, 0},
    Form{GBA_INJECT_FATAL, "fatal", 0, 0},
    Form{GBA_INJECT_REMOVE, "remove", 0, kPort},
    Form{GBA_INJECT_SLOW_COMMAND, "slow-command", kTime, kPort | kCount | kAfter},
};
// GBA_INJECT_STORM is reserved: nothing injects it.
static_assert(kForms.size() == GBA_INJECT_END - 2, "every fault but one has its form");

struct KeyName {
  const char* name;
  Key key;
};
constexpr std::array kKeys{
    KeyName{"group", kGroup},  KeyName{"member", kMember}, KeyName{"port", kPort},
    KeyName{"count", kCount},  KeyName{"after", kAfter},   KeyName{"time", kTime},
    KeyName{"sigma", kSpread}, KeyName{"value", kValue},   KeyName{"at", kAt},
};

const Form* form_of(unsigned kind) {
  const auto* const found =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& form) { return form.kind == kind; });
  return found == kForms.end() ? nullptr : found;
}

std::string fault_names() {
  std::string names;
  for (const auto& form : kForms) {
    names += (names.empty() ? "" : ", ") + std::string(form.name);
  }
  return names;
}

std::string names_of(unsigned keys) {
  std::string names;
  for (const auto& entry : kKeys) {
    if ((keys & entry.key) != 0) {
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
  }
  return names;
}

// Decimal or 0x, and negative ones as the register holds them.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  text.remove_prefix(negative ? 1 : 0);
  const auto value = base::number_of_either_kind<std::uint64_t>(text);
  return value && negative ? ~*value + 1 : value;
}

// 500ns, 1.5us, 20ms, 3s
std::optional<Time> parse_duration(std::string_view text) {
  const auto number = base::take_number<double>(text);
  const double scale = text == "ns" ? 1 : text == "us" ? 1e3 : text == "ms" ? 1e6 : text == "s" ? 1e9 : 0;
  constexpr double kLongest = 1e18;
  if (!number || scale == 0 || !(*number >= 0) || *number * scale > kLongest) {
    return std::nullopt;
  }
  return static_cast<Time>(std::llround(*number * scale));
}

bool assign(TimedInjection& result, Key key, std::string_view text) {
  Injection& injection = result.injection;
  const auto value = key == kTime || key == kSpread || key == kAt ? parse_duration(text)
                     : key == kCount && text == "always"          ? std::optional(kAlways)
                                                                  : parse_number(text);
  if (!value) {
    return false;
  }
  switch (key) {
    case kGroup:
      injection.group = value;
      break;
    case kMember:
      injection.member = value;
      break;
    case kPort:
      injection.port = value;
      break;
    case kCount:
      injection.count = *value;
      break;
    case kAfter:
      injection.after = *value;
      break;
    case kTime:
      injection.time = *value;
      break;
    case kSpread:
      injection.spread = *value;
      break;
    case kValue:
      injection.value = *value;
      break;
    case kAt:
      result.at = *value;
      break;
  }
  return true;
}

/// Takes "KEY=VALUE" and says which key it was; a text says what is wrong with it.
Result<unsigned> take_pair(std::string_view pair, unsigned allowed, TimedInjection& result) {
  const auto equals = pair.find('=');
  const auto name = pair.substr(0, equals);
  const auto* const known = std::find_if(
      kKeys.begin(), kKeys.end(), [&](const KeyName& key) { return name == key.name && (allowed & key.key) != 0; });
  if (known == kKeys.end() || equals == std::string_view::npos) {
    return failure(fmt::format("it takes {}, each as NAME=VALUE, and not \"{}\"", names_of(allowed), pair));
  }
  if (!assign(result, known->key, pair.substr(equals + 1))) {
    const bool lacks_unit = (known->key & (kTime | kSpread | kAt)) != 0 && parse_number(pair.substr(equals + 1));
    return failure(lacks_unit ? fmt::format("\"{}\" has no unit: write {}us, or ns, ms or s", pair, pair)
                              : fmt::format("\"{}\" has an invalid value (a number; a time such as 1.5us)", pair));
  }
  return known->key;
}

Result<void> check_range(const char* name, const std::optional<std::uint64_t>& value, std::uint64_t end) {
  if (value && *value >= end) {
    return failure(fmt::format("its {} is {}, and the last one is {}", name, *value, end - 1));
  }
  return {};
}

}  // namespace

bool waits_for_occasion(unsigned kind) {
  return (kind >= GBA_INJECT_DROP_RELEASE && kind <= GBA_INJECT_DMA_FAULT) || kind == GBA_INJECT_SLOW_COMMAND;
}

Result<void> check(const Injection& injection, const Dimensions& dimensions) {
  const Form* const form = form_of(injection.kind);
  if (form == nullptr) {
    return failure(fmt::format("there is no fault {}", injection.kind));
  }
  const unsigned given =
      (injection.group ? kGroup : 0U) | (injection.member ? kMember : 0U) | (injection.port ? kPort : 0U);
  if (const unsigned missing = form->needs & kWhere & ~given; missing != 0) {
    return failure(fmt::format("{} needs {}", form->name, names_of(missing)));
  }
  const std::uint64_t vectors = dimensions.groups + (injection.kind == GBA_INJECT_DROP_INTERRUPT ? 1 : 0);
  for (const auto& checked :
       {check_range("group", injection.group, vectors), check_range("member", injection.member, dimensions.members),
        check_range("port", injection.port, dimensions.ports + 1)}) {
    if (!checked) {
      return failure(fmt::format("{}: {}", form->name, checked.error().text));
    }
  }
  if (injection.kind == GBA_INJECT_START_SEQUENCE && injection.value > GBA_FLAG_SEQUENCE_MASK) {
    return failure("start-sequence: a sequence has 56 bits");
  }
  return {};
}

Result<TimedInjection> parse_injection(const std::string& text) {
  const auto colon = text.find(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  const auto* const form =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& entry) { return name == entry.name; });
  if (form == kForms.end()) {
    return failure(fmt::format("there is no fault \"{}\"; there are {}", name, fault_names()));
  }
  TimedInjection result;
  result.injection.kind = form->kind;
  unsigned given = 0;
  std::string_view rest = colon == std::string::npos ? std::string_view() : std::string_view(text).substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto key = take_pair(rest.substr(0, comma), form->needs | form->takes | kAt, result);
    if (!key) {
      return failure(fmt::format("{}: {}", text, key.error().text));
    }
    given |= *key;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  if (const unsigned missing = form->needs & ~given; missing != 0) {
    return failure(fmt::format("{}: it needs {}", text, names_of(missing)));
  }
  return result;
}

std::string describe(const Injection& injection) {
  const Form* const form = form_of(injection.kind);
  std::string text = form == nullptr ? "no fault" : form->name;
  const auto add = [&](const char* name, const std::optional<std::uint64_t>& value) {
    text += value ? fmt::format(" {} {}", name, *value) : "";
  };
  add("group", injection.group);
  add("member", injection.member);
  add("port", injection.port);
  return text;
}

}  // namespace fake_device
