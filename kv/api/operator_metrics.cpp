// SPDX-License-Identifier: Apache-2.0
#include "kv/api/operator_metrics.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "kv/exchange/metrics_page.hpp"

namespace shmem::api {

void OperatorCounters::count(const Result<void>& outcome, Clock::time_point begin, std::uint64_t blocks,
                             std::uint64_t block_bytes) {
  times_.add(Clock::now() - begin);
  if (!outcome) {
    failures_of(outcome.error().code).fetch_add(1, std::memory_order_relaxed);
    return;
  }
  shuffles_.fetch_add(1, std::memory_order_relaxed);
  blocks_.fetch_add(blocks, std::memory_order_relaxed);
  bytes_.fetch_add(blocks * block_bytes, std::memory_order_relaxed);
}

OperatorCounters::Count& OperatorCounters::failures_of(std::errc code) {
  return code == std::errc::invalid_argument     ? invalid_
         : code == std::errc::connection_aborted ? aborted_
         : code == std::errc::owner_dead         ? dead_
         : code == std::errc::timed_out          ? timed_out_
                                                 : other_;
}

shmemx_kv_stats_t OperatorCounters::stats() const {
  const auto get = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  return {.shuffles = get(shuffles_),
          .sent_blocks = get(blocks_),
          .sent_bytes = get(bytes_),
          .time_ns = times_.sum_ns(),
          .failed_invalid = get(invalid_),
          .failed_aborted = get(aborted_),
          .failed_dead = get(dead_),
          .failed_timeout = get(timed_out_),
          .failed_other = get(other_),
          .metrics_port = 0,
          .reserved = {}};
}

std::string OperatorCounters::page(int pe) const {
  const shmemx_kv_stats_t now = stats();
  exchange::MetricsPage page("shmem_kv", fmt::format("pe=\"{}\"", pe));
  page.counter("shuffles", "", "Shuffles that have ended without an error", now.shuffles);
  page.counter("sent_blocks", "", "Blocks that went to other PEs, of all layers together", now.sent_blocks);
  page.counter("sent_bytes", "bytes", "Bytes of those blocks", now.sent_bytes);
  const std::pair<std::string_view, std::uint64_t> causes[] = {{"invalid", now.failed_invalid},
                                                               {"aborted", now.failed_aborted},
                                                               {"pe_dead", now.failed_dead},
                                                               {"timeout", now.failed_timeout},
                                                               {"other", now.failed_other}};
  page.counter_by_cause("failed_shuffles", "Shuffles that have failed, by cause", causes);
  page.histogram("shuffle_seconds", "Times of shuffles, from the call until this PE knew of the end", times_);
  return page.end();
}

}  // namespace shmem::api
