// SPDX-License-Identifier: Apache-2.0
// The calls of shmemx_exchange.h that concern the holder.
#include <algorithm>
#include <chrono>
#include <vector>

#include "kv/exchange/handle.hpp"

using shmem::exchange::code_of;
using shmem::exchange::Exchange;
using shmem::exchange::Holder;
using shmem::exchange::HolderClient;
using shmem::exchange::HolderKind;
using shmem::exchange::HolderSettings;
using shmem::exchange::is_inherited;
using shmem::exchange::is_plain_name;
using shmem::exchange::kMostSlots;
using shmem::exchange::kMostTenants;
using shmem::exchange::refuse;
using shmem::exchange::refuse_child;
using shmem::exchange::report;
using shmem::exchange::settings_from;

namespace {

constexpr std::size_t kMostPuts = std::size_t{1} << 30;
constexpr std::uint32_t kMostAnswerMs = 60'000;

/// As many blocks as an engine's, unless they are smaller than usual.
std::uint32_t blocks_for(std::uint64_t bytes) {
  constexpr std::uint64_t kSmallBlock = 16384;
  constexpr std::uint64_t kLeast = 65536;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / kSmallBlock, kLeast, kMostSlots));
}

shmem::Result<HolderSettings> holder_settings_from(const shmemx_exchange_holding_t& given) {
  const bool reserved =
      std::any_of(std::begin(given.reserved), std::end(given.reserved), [](auto value) { return value != 0; });
  if (reserved || given.tenant_count >= kMostTenants || (given.tenants == nullptr && given.tenant_count > 0)) {
    return shmem::fail(
        std::errc::invalid_argument,
        fmt::format("shmem: shmemx_exchange_hold: there are more than {} tenants, or a reserved option is "
                    "not 0",
                    kMostTenants - 1));
  }
  HolderSettings settings{.bytes = given.bytes};
  for (std::size_t i = 0; i < given.tenant_count; ++i) {
    settings.tenants.push_back({given.tenants[i].name != nullptr ? given.tenants[i].name : "", given.tenants[i].bytes});
  }
  return settings;
}

/// Discards, pins or unpins.
int change(shmemx_exchange_t& exchange, HolderKind kind, std::span<const shmemx_exchange_key_t> keys,
           std::uint64_t layout, std::int32_t* statuses) {
  std::vector<std::int32_t> own;
  if (statuses == nullptr) {
    own.resize(keys.size());
    statuses = own.data();
  }
  const auto done = exchange.client->change(kind, keys, layout, statuses);
  return done ? static_cast<int>(std::count(statuses, statuses + keys.size(), 0)) : report(done.error());
}

}  // namespace

extern "C" {

int shmemx_exchange_hold(const char* name, const shmemx_exchange_options_t* options,
                         const shmemx_exchange_holding_t* holding, shmemx_exchange_t** exchange) noexcept try {
  if (name == nullptr || holding == nullptr || exchange == nullptr) {
    return refuse(__func__, "name, holding or exchange is NULL");
  }
  *exchange = nullptr;
  auto settings = settings_from(options, __func__);
  const auto holds = holder_settings_from(*holding);
  if (!settings || !holds) {
    return report(settings ? holds.error() : settings.error());
  }
  settings->holds = true;
  settings->blocks = options != nullptr && options->blocks != 0 ? options->blocks : blocks_for(holds->bytes);
  auto opened = Exchange::open(name, *settings);
  if (!opened) {
    return report(opened.error());
  }
  auto holder = Holder::open(**opened, *holds);
  if (!holder) {
    return report(holder.error());
  }
  auto client = std::make_unique<HolderClient>(**opened);
  *exchange =
      new shmemx_exchange_t{.exchange = *std::move(opened), .client = std::move(client), .holder = *std::move(holder)};
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_use_holder(shmemx_exchange_t* exchange, const char* tenant, uint32_t answer_ms) noexcept try {
  constexpr std::uint32_t kUsualAnswerMs = 100;
  if (exchange == nullptr || answer_ms > kMostAnswerMs || (tenant != nullptr && !is_plain_name(tenant))) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL"
                            : answer_ms > kMostAnswerMs
                                ? "answer_ms is more than 60000"
                                : "a tenant's name has up to 48 letters, digits, '.', '_' or '-'");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  exchange->client->use(tenant != nullptr ? tenant : "",
                        std::chrono::milliseconds(answer_ms != 0 ? answer_ms : kUsualAnswerMs));
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_put(shmemx_exchange_t* exchange, shmemx_exchange_put_t* puts, size_t count) noexcept try {
  if (exchange == nullptr || (puts == nullptr && count > 0) || count > kMostPuts) {
    return refuse(__func__, "exchange or puts is NULL, or there are more than 2^30");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto done = exchange->client->put({puts, count});
  return done ? static_cast<int>(std::count_if(
                    puts, puts + count, [](const auto& put) { return put.status == 0 || put.status == -EEXIST; }))
              : report(done.error());
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_discard(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count,
                            uint64_t layout, int32_t* statuses) noexcept try {
  if (exchange == nullptr || (keys == nullptr && count > 0) || count > kMostPuts) {
    return refuse(__func__, "exchange or keys is NULL, or there are more than 2^30");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return change(*exchange, HolderKind::kDiscard, {keys, count}, layout, statuses);
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_discard_all(shmemx_exchange_t* exchange) noexcept try {
  if (exchange == nullptr) {
    return refuse(__func__, "exchange is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return code_of(exchange->client->clear());
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_pin(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count, uint64_t layout,
                        int pinned, int32_t* statuses) noexcept try {
  if (exchange == nullptr || (keys == nullptr && count > 0) || count > kMostPuts) {
    return refuse(__func__, "exchange or keys is NULL, or there are more than 2^30");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return change(*exchange, pinned != 0 ? HolderKind::kPin : HolderKind::kUnpin, {keys, count}, layout, statuses);
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_holder_stats(shmemx_exchange_t* exchange, shmemx_exchange_holder_stats_t* stats) noexcept try {
  if (exchange == nullptr || stats == nullptr) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "stats is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  *stats = {};
  return code_of(exchange->client->stats(*stats));
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_events(shmemx_exchange_t* exchange, shmemx_exchange_position_t* position,
                           shmemx_exchange_event_t* events, size_t capacity, uint64_t timeout_ns) noexcept try {
  if (exchange == nullptr || position == nullptr || (events == nullptr && capacity > 0)) {
    return refuse(__func__, "exchange, position or events is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto got = exchange->client->events(*position, {events, std::min(capacity, kMostPuts)},
                                            shmem::exchange::limit_of(timeout_ns));
  return got ? *got : report(got.error());
}
SHMEM_EXCHANGE_CATCH
}

SHMEM_EXCHANGE_SECOND_NAME(hold)
SHMEM_EXCHANGE_SECOND_NAME(use_holder)
SHMEM_EXCHANGE_SECOND_NAME(put)
SHMEM_EXCHANGE_SECOND_NAME(discard)
SHMEM_EXCHANGE_SECOND_NAME(discard_all)
SHMEM_EXCHANGE_SECOND_NAME(pin)
SHMEM_EXCHANGE_SECOND_NAME(holder_stats)
SHMEM_EXCHANGE_SECOND_NAME(events)
