// SPDX-License-Identifier: Apache-2.0
// The groups of a device that this port owns: from ALLOC to FREE.
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/size_text.hpp"
#include "driver/device.hpp"
#include "uapi/gba_regs.h"

namespace gba {

namespace {

std::string group_name(const gba_group_handle& handle) {
  return fmt::format("group {}", handle.group);
}

/// From 2^54 on lie the poison of release flags and, at 2^56, a sequence whose 56 bits are those of a cleared flag: a
/// barrier would look released before it is. A group that begins below does not get there.
constexpr std::uint64_t kFirstSequenceEnd = UINT64_C(1) << 54;
static_assert(FlagMemory::kPoison >= kFirstSequenceEnd);

/// The bits of members 0..count-1 in mask word `word`.
std::uint64_t mask_word(std::uint32_t count, std::uint32_t word) {
  const std::uint32_t below = std::min(count, 64 * word);
  const std::uint32_t bits = std::min(count - below, 64U);
  return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

}  // namespace

Result<void> Device::check(const gba_group_handle& handle) const {
  if (handle.group < facts_.groups && handle.member_count > 0 && handle.member_count <= facts_.members &&
      handle.reserved == 0 && handle.sequence < kFirstSequenceEnd) {
    return {};
  }
  return fail(std::errc::invalid_argument,
              fmt::format("gba: {}: not a handle of a group: group {} of {}", backend_->path(), handle.group,
                          base::count(handle.member_count, "member")));
}

Result<GroupLimit> Device::group_limit() const {
  if ((facts_.capabilities & GBA_CAPS_GROUP_LIMIT) == 0) {
    return GroupLimit{};
  }
  const auto most = control_.read<std::uint64_t>(GBA_REG_GROUP_LIMIT);
  const auto held = control_.read<std::uint64_t>(GBA_REG_GROUPS_HELD);
  if (!most || !held) {
    return !most ? most.error() : held.error();
  }
  return GroupLimit{.most = *most, .held = *held};
}

/// The failure of ALLOC; at the limit with its value.
Error Device::with_limit(const Error& error) const {
  const auto limit = error.code == std::errc{EDQUOT} ? group_limit() : GroupLimit{};
  return limit && limit->most != 0
             ? fail(error.code, fmt::format("{} ({} of {})", error.text, limit->held, limit->most))
             : error;
}

Result<gba_group_handle> Device::alloc(std::uint32_t member_count, std::uint64_t sequence) {
  if (member_count == 0 || member_count > facts_.members || sequence >= kFirstSequenceEnd) {
    return fail(std::errc::invalid_argument,
                fmt::format("gba: {}: cannot allocate a group of {} members (1 to {}) from sequence {} (below 2^54)",
                            backend_->path(), member_count, facts_.members, sequence));
  }
  const auto result = commands_.run({.opcode = GBA_CMD_ALLOC}, "allocate a group");
  if (!result) {
    return with_limit(result.error());
  }
  const gba_group_handle handle{.group = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, *result)),
                                .key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, *result)),
                                .member_count = member_count,
                                .reserved = 0,
                                .sequence = sequence};
  if (auto good = check(handle); !good) {
    return good.error();
  }
  if (auto configured = configure(handle); !configured) {
    (void)commands_.run({.opcode = GBA_CMD_FREE, .group = static_cast<std::uint8_t>(handle.group)}, "free it again");
    return configured.error();
  }
  const std::lock_guard lock(owned_mutex_);
  owned_[handle.group] = handle.key;
  return handle;
}

Result<void> Device::configure(const gba_group_handle& handle) {
  const std::uint64_t base = map().block(handle.group);
  const std::uint64_t count_at = base + map().member_count;
  auto counted = map().member_count_bytes == 4 ? control_.write<std::uint32_t>(count_at, handle.member_count)
                                               : control_.write<std::uint64_t>(count_at, handle.member_count);
  if (!counted) {
    return counted;
  }
  for (std::uint32_t word = 0; word < profile_.mask_words(); ++word) {
    const std::uint64_t mask = mask_word(handle.member_count, word);
    auto done = control_.write<std::uint64_t>(base + map().member_mask + std::uint64_t{8} * word, mask);
    if (!done) {
      return done;
    }
  }
  auto done = control_.write<std::uint64_t>(base + map().sequence, handle.sequence);
  if (!done) {
    return done;
  }
  // Other ports may join from now on.
  const auto arrived = control_of(handle.group);
  return arrived ? Result<void>{} : arrived.error();
}

Result<std::uint64_t> Device::control_of(std::uint32_t group) {
  auto value = control_.read<std::uint64_t>(map().block(group) + map().control);
  if (value && *value == GBA_ALL_ONES) {
    backend_->declare_lost(Loss::kRemoved);
    return backend_->loss_error();
  }
  return value;
}

Result<void> Device::control_group(const gba_group_handle& handle, std::uint64_t value, const std::string& tried) {
  if (auto good = check(handle); !good) {
    return good;
  }
  const std::lock_guard lock(owned_mutex_);
  if (owned_[handle.group] == 0 || owned_[handle.group] != handle.key) {
    return fail(std::errc::operation_not_permitted, tried + "this port does not own it");
  }
  return control_.write<std::uint64_t>(map().block(handle.group) + map().control, value);
}

Result<void> Device::enable(const gba_group_handle& handle) {
  const std::string tried = fmt::format("gba: {}: cannot enable {}: ", backend_->path(), group_name(handle));
  auto written = control_group(handle, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN, tried);
  if (!written) {
    return written;
  }
  const auto now = control_of(handle.group);
  if (!now) {
    return now.error();
  }
  if ((*now & GBA_CONTROL_ENABLE) == 0) {
    return fail(std::errc{ESTALE}, tried + "the device did not accept it (is the group in error, or reclaimed?)");
  }
  return {};
}

Result<void> Device::disable(const gba_group_handle& handle) {
  const std::string tried = fmt::format("gba: {}: cannot disable {}: ", backend_->path(), group_name(handle));
  if (auto written = control_group(handle, 0, tried); !written) {
    return written;
  }
  // Other members may leave from now on, through other ports.
  const auto now = control_of(handle.group);
  if (!now) {
    return now.error();
  }
  if ((*now & GBA_CONTROL_ENABLE) != 0) {
    return fail(std::errc::io_error, tried + "the device did not accept it");
  }
  return {};
}

Result<void> Device::free_group(const gba_group_handle& handle) {
  if (auto good = check(handle); !good) {
    return good;
  }
  const std::lock_guard lock(owned_mutex_);
  std::uint32_t& key = owned_[handle.group];
  if (key != 0 && key != handle.key) {
    return fail(std::errc::no_such_file_or_directory,
                fmt::format("gba: {}: cannot free {}: the handle belongs to an earlier group", backend_->path(),
                            group_name(handle)));
  }
  key = 0;
  const auto freed = commands_.run({.opcode = GBA_CMD_FREE, .group = static_cast<std::uint8_t>(handle.group)},
                                   fmt::format("free {}", group_name(handle)));
  if (!freed) {
    return freed.error();
  }
  return {};
}

}  // namespace gba
