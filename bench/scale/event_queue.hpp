// SPDX-License-Identifier: Apache-2.0
// What happens next. A radix heap: time does not run backwards, and a hundred thousand members make millions of events.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "bench/scale/parameters.hpp"

namespace scale {

enum class What : std::int32_t { kGoOn, kMessage, kAddition, kArrival };

struct Event {
  Time at;
  What what;
  std::int32_t member;  // who goes on; who is told; whose step it is
  std::int32_t word;    // the message's; the step's index
  std::int32_t barrier;
};

class EventQueue {
 public:
  /// REQUIRES: event.at is not before what pop() gave last.
  void push(const Event& event) {
    buckets_[bucket_of(event.at)].push_back(event);
    ++size_;
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// The earliest; of equal times the one that came first. REQUIRES: !empty().
  Event pop() {
    if (next_ == buckets_[0].size()) refill();
    --size_;
    return buckets_[0][next_++];
  }

 private:
  /// By the highest bit in which a time differs from now_: those in bucket 0 are now, those in a lower one are earlier.
  [[nodiscard]] std::size_t bucket_of(Time at) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(at) ^ static_cast<std::uint64_t>(now_)));
  }
  void refill() {
    buckets_[0].clear();
    next_ = 0;
    auto& earliest = *std::ranges::find_if(buckets_, [](const auto& bucket) { return !bucket.empty(); });
    now_ = std::ranges::min_element(earliest, {}, &Event::at)->at;
    for (const Event& event : earliest) buckets_[bucket_of(event.at)].push_back(event);
    earliest.clear();
  }

  std::array<std::vector<Event>, 65> buckets_;
  std::size_t next_ = 0;  // of bucket 0
  std::size_t size_ = 0;
  Time now_ = 0;
};

}  // namespace scale
