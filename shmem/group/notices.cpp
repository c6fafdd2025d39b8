// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/notices.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace shmem {
namespace {

using group_tags::kMail;
using group_tags::kNotice;

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
constexpr std::chrono::milliseconds kLimit{200};

using Text = std::array<char, 500>;  // ends with a zero unless it is full

std::uint64_t tag_of(int from) {
  return kNotice | static_cast<std::uint32_t>(from);
}

}  // namespace

std::optional<TagPattern> Notices::interrupts(std::uint64_t tag) {
  return (tag & (kMail | kNotice)) == 0 ? std::optional(TagPattern{kNotice, kNotice | kMail}) : std::nullopt;
}

void Notices::send(const std::string& why) {
  Text text{};
  why.copy(text.data(), text.size());
  std::vector<std::uint64_t> requests;
  for (int member = 0; member < members_; ++member) {
    if (member == me_ || network_.has_lost(member)) {
      continue;
    }
    if (const auto request = network_.start_send(member, tag_of(me_), text.data(), text.size())) {
      requests.push_back(*request);
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  for (const std::uint64_t request : requests) {
    const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
    // A member that does not take it is gone, or finds out as said above.
    static_cast<void>(network_.wait(request, std::max(left, std::chrono::nanoseconds(0))));
  }
}

bool Notices::has_come() const {
  return network_.has_come({kNotice, kNotice | kMail});
}

bool Notices::has_come(int from) const {
  return network_.has_come({tag_of(from), kAllBits});
}

std::optional<Notices::Notice> Notices::receive(int from) {
  Text text{};
  const auto request = network_.start_receive(from, tag_of(from), text.data(), text.size());
  if (!request || !network_.wait(*request, kLimit)) {
    return std::nullopt;
  }
  return Notice{from, std::string(text.begin(), std::find(text.begin(), text.end(), '\0'))};
}

std::optional<Notices::Notice> Notices::take() {
  std::optional<Notice> any;
  for (int member = 0; member < members_ && has_come(); ++member) {
    if (member == me_ || !has_come(member)) {
      continue;
    }
    auto notice = receive(member);
    if (!any) {
      any = std::move(notice);
    }
  }
  return any;
}

}  // namespace shmem
