// SPDX-License-Identifier: Apache-2.0
// What an operator has done on this PE.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "kv/exchange/metrics.hpp"
#include "shmem/result.hpp"
#include "shmemx_kv.h"

namespace shmem::api {

/// Counts shuffles. One thread at a time counts; any may read. Relaxed: nothing depends on the numbers.
class OperatorCounters {
 public:
  using Clock = std::chrono::steady_clock;

  /// A shuffle that began at `begin` has ended. `blocks` of `block_bytes` each went to other PEs, if it succeeded.
  void count(const Result<void>& outcome, Clock::time_point begin, std::uint64_t blocks, std::uint64_t block_bytes);

  /// All but metrics_port.
  [[nodiscard]] shmemx_kv_stats_t stats() const;
  /// As OpenMetrics text.
  [[nodiscard]] std::string page(int pe) const;

 private:
  using Count = std::atomic<std::uint64_t>;

  Count& failures_of(std::errc code);

  exchange::Histogram times_;
  Count shuffles_{0}, blocks_{0}, bytes_{0};
  Count invalid_{0}, aborted_{0}, dead_{0}, timed_out_{0}, other_{0};  // shuffles that have failed, by cause
};

}  // namespace shmem::api
