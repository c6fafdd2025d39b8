// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "shmem/bootstrap/message_text.hpp"

namespace shmem {
namespace {

using group_tags::kMail;
using group_tags::kNotice;

/// Sends that are not over, cancelled in the end: UCX reads what is sent until then. Needs no memory.
struct Sends {
  Network& network;
  std::vector<std::uint64_t>& requests;
  ~Sends() {
    for (const std::uint64_t request : requests) {
      network.cancel(request);
    }
    requests.clear();
  }
};

constexpr TagPattern kAnyNotice{kNotice, kNotice | kMail};
constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
constexpr std::chrono::milliseconds kLimit{200};

using Text = std::array<char, 500>;  // ends with a zero unless it is full

std::uint64_t tag_of(int member) {
  return kNotice | static_cast<std::uint32_t>(member);
}

}  // namespace

std::optional<TagPattern> Notices::interrupts(std::uint64_t tag) {
  return (tag & (kMail | kNotice)) == 0 ? std::optional(kAnyNotice) : std::nullopt;
}

void Notices::send(const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(sent_, true)) {
    return;
  }
  take();
  Text text{};
  (first_ >= 0 ? why_ : error.text).copy(text.data(), text.size());
  const Sends sends{network_, requests_};
  for (int member = 0; member < static_cast<int>(gone_.size()); ++member) {
    if (member == me_ || network_.has_lost(member)) {
      continue;
    }
    if (const auto request = network_.start_send(member, tag_of(me_), text.data(), text.size())) {
      requests_.push_back(*request);
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (!requests_.empty()) {
    const std::uint64_t request = requests_.back();
    requests_.pop_back();
    const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
    // A member that does not take it is gone, or finds out as said above.
    static_cast<void>(network_.wait(request, std::max(left, std::chrono::nanoseconds(0))));
  }
}

bool Notices::has_come() {
  const std::scoped_lock lock(mutex_);
  take();
  return first_ >= 0;
}

bool Notices::has_come(int member) {
  const std::scoped_lock lock(mutex_);
  take();
  return gone_[static_cast<std::size_t>(member)];
}

Error Notices::cause_of(const Error& error, std::optional<int> member) {
  if (error.code != std::errc::connection_reset && error.code != std::errc::owner_dead) {
    return error;
  }
  const std::scoped_lock lock(mutex_);
  take();
  if (first_ >= 0) {
    return fail(std::errc::connection_reset, fmt::format("shmem: PE {}: PE {} is lost: it has given the group up: {}",
                                                         me_, first_, without_prefix(why_)));
  }
  bool others = false;
  for (int one = 0; one < static_cast<int>(gone_.size()); ++one) {
    others = others || (one != me_ && one != member && network_.has_lost(one));
  }
  return others ? network_.lost().value_or(error) : error;
}

std::optional<std::string> Notices::receive(int member) {
  Text text{};
  const auto request = network_.start_receive(member, tag_of(member), text.data(), text.size());
  if (!request || !network_.wait(*request, kLimit)) {
    return std::nullopt;
  }
  return std::string(text.begin(), std::find(text.begin(), text.end(), '\0'));
}

void Notices::take() {
  if (!network_.has_come(kAnyNotice)) {
    return;
  }
  for (int member = 0; member < static_cast<int>(gone_.size()); ++member) {
    if (member == me_ || !network_.has_come({tag_of(member), kAllBits})) {
      continue;
    }
    auto why = receive(member);
    gone_[static_cast<std::size_t>(member)] = true;
    if (first_ < 0) {
      first_ = member;
      why_ = why.value_or("its reason has not come");
    }
  }
}

}  // namespace shmem
