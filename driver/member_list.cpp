// SPDX-License-Identifier: Apache-2.0
#include "driver/member_list.hpp"

#include <bit>
#include <cstddef>
#include <vector>

namespace gba {

namespace {

/// More than a person reads; a message has its limits.
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
    if (!contains(members, member)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == member) {
      ranges.back().last = member;
    } else {
      ranges.push_back({member, member});
    }
  }
  return ranges;
}

std::string to_text(const Range& range) {
  std::string text = std::to_string(range.first);
  if (range.first != range.last) text.append("-").append(std::to_string(range.last));
  return text;
}

}  // namespace

std::string to_text(const MemberMask& members) {
  const std::vector<Range> ranges = ranges_of(members);
  if (ranges.empty()) return "nobody";
  if (ranges.size() == 1 && ranges[0].first == ranges[0].last) return "member " + to_text(ranges[0]);
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
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

}  // namespace gba
