// SPDX-License-Identifier: Apache-2.0
// What a member tells about itself as OpenMetrics text: https://prometheus.io/docs/specs/om/open_metrics_spec/
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "shmemx_exchange.h"

namespace shmem::exchange {

/// Times of calls, in ranges of which each ends at twice the end of the one before. Relaxed: nothing depends on them.
class Histogram {
 public:
  /// The last one has no end.
  static constexpr std::size_t kRanges = 25;
  static constexpr std::uint64_t kFirstNs = 250;

  /// A time of exactly this many nanoseconds is in the range.
  static constexpr std::uint64_t end_of(std::size_t range) { return kFirstNs << range; }
  static constexpr std::size_t range_of(std::uint64_t ns) {
    const auto range = ns == 0 ? 0 : static_cast<std::size_t>(std::bit_width((ns - 1) / kFirstNs));
    return range < kRanges ? range : kRanges - 1;
  }

  void add(std::chrono::nanoseconds time) {
    const auto ns = static_cast<std::uint64_t>(time.count());
    counts_[range_of(ns)].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t count(std::size_t range) const { return counts_[range].load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kRanges> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

/// The times of each kind of call that copies, searches or waits.
struct CallTimes {
  Histogram find, pull, withdraw;
};

/// Adds the time that it exists.
class Timer {
 public:
  /// `histogram` null: does not even look at the clock.
  explicit Timer(Histogram* histogram) : histogram_(histogram) {
    if (histogram_ != nullptr) {
      begin_ = std::chrono::steady_clock::now();
    }
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    if (histogram_ != nullptr) {
      histogram_->add(std::chrono::steady_clock::now() - begin_);
    }
  }

 private:
  Histogram* histogram_;
  std::chrono::steady_clock::time_point begin_;
};

class MetricsPage;
using WriteMetrics = std::function<void(MetricsPage& page)>;

/// `exchange` has only characters that labels may have as they are. `more`, which may be empty, adds families.
std::string metrics_text(const std::string& exchange, const shmemx_exchange_stats_t& stats, const CallTimes& times,
                         const WriteMetrics& more = {});

}  // namespace shmem::exchange
