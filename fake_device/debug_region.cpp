// SPDX-License-Identifier: Apache-2.0
#include "fake_device/debug_region.hpp"

#include <limits>

namespace fake_device {
namespace {

constexpr std::uint64_t kRegister = sizeof(std::uint64_t);

std::optional<std::uint64_t> given(std::uint64_t value) {
  return value == GBA_DEBUG_ANY ? std::nullopt : std::optional(value);
}

}  // namespace

std::uint64_t* DebugRegion::argument(std::uint64_t offset) {
  switch (offset) {
    case GBA_DEBUG_GROUP:
      return &group_;
    case GBA_DEBUG_MEMBER:
      return &member_;
    case GBA_DEBUG_PORT:
      return &port_;
    case GBA_DEBUG_COUNT:
      return &count_;
    case GBA_DEBUG_AFTER:
      return &after_;
    case GBA_DEBUG_TIME:
      return &time_;
    case GBA_DEBUG_SPREAD:
      return &spread_;
    case GBA_DEBUG_VALUE:
      return &value_;
    default:
      return nullptr;
  }
}

std::uint64_t DebugRegion::read(std::uint64_t offset, std::uint64_t size) const {
  if (size != kRegister) {
    return 0;
  }
  switch (offset) {
    case GBA_DEBUG_MAGIC:
      return GBA_DEBUG_MAGIC_VALUE;
    case GBA_DEBUG_RESULT:
      return result_;
    case GBA_DEBUG_ARMED:
      return engine_.faults().armed();
    case GBA_DEBUG_STRUCK:
      return engine_.faults().struck();
    default: {
      const auto* const found = const_cast<DebugRegion*>(this)->argument(offset);
      return found == nullptr ? 0 : *found;
    }
  }
}

std::string DebugRegion::write(std::uint64_t offset, std::uint64_t size, std::uint64_t value, Time now) {
  if (size != kRegister) {
    return "";
  }
  if (auto* const found = argument(offset)) {
    *found = value;
    return "";
  }
  if (offset == GBA_DEBUG_CLEAR) {
    engine_.faults().clear();
    return "no faults any more";
  }
  return offset == GBA_DEBUG_INJECT ? inject(value, now) : "";
}

Injection DebugRegion::injection(std::uint64_t kind) const {
  constexpr std::uint64_t kLargest = std::numeric_limits<unsigned>::max();
  return {.kind = static_cast<unsigned>(std::min(kind, kLargest)),
          .group = given(group_),
          .member = given(member_),
          .port = given(port_),
          .count = count_,
          .after = after_,
          .time = time_,
          .spread = spread_,
          .value = value_};
}

std::string DebugRegion::inject(std::uint64_t kind, Time now) {
  const Injection wanted = injection(kind);
  const auto outcome = engine_.inject(wanted, now);
  result_ = outcome ? 0 : GBA_DEBUG_REFUSED;
  return outcome ? "fault: " + describe(wanted) : "fault refused: " + outcome.error().text;
}

}  // namespace fake_device
