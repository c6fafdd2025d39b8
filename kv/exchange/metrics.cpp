// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/metrics.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "kv/exchange/metrics_page.hpp"

namespace shmem::exchange {

std::string metrics_text(const std::string& exchange, const shmemx_exchange_stats_t& stats, const CallTimes& times,
                         const WriteMetrics& more) {
  MetricsPage page("shmem_exchange", fmt::format("exchange=\"{}\"", exchange));
  page.info("The member that answers", fmt::format("seat=\"{}\",member=\"{:x}\"", stats.seat, stats.id));
  page.gauge("members", "", "Other members of the exchange", stats.members);
  page.gauge("unreachable_members", "", "Addresses of members that were given and at which none answers",
             stats.unreachable);
  page.gauge("readers", "", "Members that read from this one", stats.readers);
  page.gauge("blocks", "", "Blocks that this member publishes", stats.blocks);
  page.gauge("block_bytes", "bytes", "Bytes of those blocks", stats.bytes);
  page.counter("published_blocks", "", "Blocks that were published", stats.published);
  page.counter("withdrawn_blocks", "", "Blocks that were withdrawn", stats.withdrawn);
  page.counter("expired_leases", "", "Blocks whose withdraw waited for a lease until its time was over",
               stats.leases_expired);
  page.counter("refused_connections", "", "Connections of other users, or that did not follow the protocol",
               stats.refused);
  page.counter("found_keys", "", "Keys that a find has found", stats.found);
  page.counter("missed_keys", "", "Keys that a find has not found", stats.missed);
  page.counter("quota_refusals", "", "Leases and transfers that a quota refused", stats.over_quota);
  page.counter("pulled_blocks", "", "Blocks that were pulled from other members", stats.pulled_blocks);
  page.counter("pulled_bytes", "bytes", "Bytes of those blocks", stats.pulled_bytes);
  const std::pair<std::string_view, std::uint64_t> causes[] = {{"stale", stats.failed_stale},
                                                               {"owner_dead", stats.failed_dead},
                                                               {"timeout", stats.failed_timeout},
                                                               {"corrupt", stats.failed_corrupt},
                                                               {"other", stats.failed_other}};
  page.counter_by_cause("failed_blocks", "Blocks that could not be pulled, by cause", causes);
  page.histogram("find_seconds", "Times of calls that find blocks", times.find);
  page.histogram("pull_seconds", "Times of calls that pull blocks, and of pulls in the background", times.pull);
  page.histogram("withdraw_seconds", "Times of calls that withdraw blocks, in which they wait for readers",
                 times.withdraw);
  if (more) {
    more(page);
  }
  return page.end();
}

}  // namespace shmem::exchange
