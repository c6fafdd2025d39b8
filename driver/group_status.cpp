// SPDX-License-Identifier: Apache-2.0
#include "driver/group_status.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "uapi/gba_regs.h"

namespace gba {

namespace {

/// Messages have a limited length, and longer lists do not help.
constexpr std::size_t kMaxRanges = 16;

struct Range {
  unsigned first;
  unsigned last;
};

bool contains(const MemberMask& members, unsigned member) {
  return ((members[member / 64] >> (member % 64)) & 1) != 0;
}

std::vector<Range> ranges_of(const MemberMask& members) {
  std::vector<Range> ranges;
  for (unsigned member = 0; member < 64 * members.size(); ++member) {
    if (!contains(members, member)) {
      continue;
    }
    if (!ranges.empty() && ranges.back().last + 1 == member) {
      ranges.back().last = member;
    } else {
      ranges.push_back({member, member});
    }
  }
  return ranges;
}

std::string to_text(const Range& range) {
  return range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.last);
}

}  // namespace

std::string to_text(const MemberMask& members) {
  const std::vector<Range> ranges = ranges_of(members);
  if (ranges.empty()) {
    return "nobody";
  }
  if (ranges.size() == 1 && ranges[0].first == ranges[0].last) {
    return fmt::format("member {}", to_text(ranges[0]));
  }
  std::string text = "members ";
  unsigned more = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i >= kMaxRanges) {
      more += ranges[i].last - ranges[i].first + 1;
    } else {
      const bool last = i + 1 == ranges.size();
      text += (i == 0 ? "" : last ? " and " : ", ") + to_text(ranges[i]);
    }
  }
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

namespace {

static_assert(GBA_NO_MEMBER == GBA_ERROR_CODE_MEMBER_MASK && GBA_NO_PORT == GBA_MEMBER_PORT_NONE);

/// Reads one register after the other, and keeps the first error.
class Reader {
 public:
  Reader(Device& device, std::uint32_t group) : device_(device), block_(device.map().block(group)) {}

  std::uint64_t read(std::uint64_t offset, unsigned bytes = 8) {
    if (!error_) {
      return 0;
    }
    const std::uint64_t at = block_ + offset;
    if (bytes == 4) {
      return keep(device_.control().read<std::uint32_t>(at));
    }
    return keep(device_.control().read<std::uint64_t>(at));
  }
  [[nodiscard]] const Result<void>& error() const { return error_; }

 private:
  template <typename T>
  std::uint64_t keep(const Result<T>& value) {
    if (!value) {
      error_ = value.error();
    }
    return value.value_or(0);
  }

  Device& device_;
  const std::uint64_t block_;
  Result<void> error_;
};

void read_ports(Reader& reader, const Profile& profile, gba_group_status& status) {
  const unsigned bits = profile.map.member_port_bits;
  const std::uint64_t mask = (UINT64_C(1) << bits) - 1;
  const std::uint32_t per_word = 64 / bits;
  for (std::uint32_t first = 0; first < profile.members; first += per_word) {
    const std::uint64_t here = status.members[first / 64] >> (first % 64) & ((UINT64_C(1) << per_word) - 1);
    if (here == 0) {
      continue;  // no member can have joined
    }
    const std::uint64_t word = reader.read(profile.map.member_port + first / per_word * UINT64_C(8));
    for (std::uint32_t i = 0; i < per_word && first + i < profile.members; ++i) {
      const std::uint64_t port = (word >> (bits * i)) & mask;
      status.ports[first + i] = static_cast<std::uint16_t>(port == mask ? GBA_NO_PORT : port);
    }
  }
}

}  // namespace

Result<gba_group_status> read_group_status(Device& device, std::uint32_t group) {
  if (group >= device.facts().groups) {
    return fail(std::errc::invalid_argument,
                fmt::format("gba: {}: no group {}: it has {}", device.backend().path(), group, device.facts().groups));
  }
  const Profile& profile = device.profile();
  const GroupMap& map = profile.map;
  Reader reader(device, group);
  gba_group_status status{};
  status.group = group;
  status.member_count = static_cast<std::uint32_t>(reader.read(map.member_count, map.member_count_bytes));
  status.status = static_cast<std::uint32_t>(reader.read(map.status));
  const std::uint64_t error = reader.read(map.error_code);
  status.error_code = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_ERROR_CODE_CODE, error));
  status.error_member = status.error_code == GBA_ERROR_NONE
                            ? GBA_NO_MEMBER
                            : static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, error));
  status.enabled = (reader.read(map.control) & GBA_CONTROL_ENABLE) != 0 ? 1 : 0;
  status.sequence = reader.read(map.sequence);
  status.timeout_ns = reader.read(map.timeout);
  for (std::uint32_t word = 0; word < profile.mask_words(); ++word) {
    status.members[word] = reader.read(map.member_mask + UINT64_C(8) * word);
    status.arrived[word] = status.members[word] == 0 ? 0 : reader.read(map.arrived_mask + UINT64_C(8) * word);
    status.arrival_count += static_cast<std::uint32_t>(std::popcount(status.arrived[word]));
  }
  std::fill(std::begin(status.ports), std::end(status.ports), std::uint16_t{GBA_NO_PORT});
  if (device.tells_ports()) {
    status.round_age_ns = reader.read(map.round_age);
    read_ports(reader, profile, status);
  }
  if (!reader.error()) {
    return reader.error().error();
  }
  return status;
}

}  // namespace gba
