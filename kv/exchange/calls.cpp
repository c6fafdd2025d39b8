// SPDX-License-Identifier: Apache-2.0
// The calls of shmemx_exchange.h but those of the planner and the holder, and those of shmemx.h that a program needs.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "kv/exchange/handle.hpp"
#include "shmem/config/config_file.hpp"
#include "shmem/config/log.hpp"
#include "shmemx.h"
#include "wire/interfaces.hpp"

using shmem::Result;
using shmem::exchange::code_of;
using shmem::exchange::Exchange;
using shmem::exchange::ExchangeSettings;
using shmem::exchange::HolderClient;
using shmem::exchange::is_inherited;
using shmem::exchange::NetworkSettings;
using shmem::exchange::refuse;
using shmem::exchange::refuse_child;
using shmem::exchange::report;
using shmem::exchange::settings_from;
using shmem::exchange::take_option;
using shmem::exchange::TransferPointer;

struct shmemx_exchange_transfer_t {
  TransferPointer transfer;
  unsigned fork = base::forks();
};

namespace {

/// The most that a call takes: it returns their number.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

Result<wire::Endpoint> endpoint_from(const std::string& text) {
  auto endpoint = wire::parse_endpoint(text);
  return endpoint ? endpoint
                  : shmem::fail(endpoint.error().code,
                                fmt::format("shmem: shmemx_exchange_connect: \"{}\": {}", text, endpoint.error().text));
}

Result<wire::Endpoint> listening_place(const char* listen, const shmem::Options& options) {
  if (listen != nullptr) {
    return endpoint_from(listen);
  }
  const auto interfaces = wire::interface_addresses();
  if (!interfaces) {
    return interfaces.error();
  }
  std::optional<wire::InterfaceChoice> choice;
  if (!options.uid_sock_ifname.empty()) {
    auto given = wire::parse_interface(options.uid_sock_ifname);
    if (!given) {
      return given.error();
    }
    choice = *given;
  }
  return wire::choose_address(*interfaces, choice);
}

Result<NetworkSettings> network_from(const shmemx_exchange_network_t& given) {
  constexpr std::uint32_t kMostAnswerMs = 600'000;
  const auto options = shmem::process_options();
  if (!options) {
    return options.error();
  }
  NetworkSettings settings;
  settings.secret = given.secret != nullptr ? given.secret : options->uid_secret;
  settings.rdma_only = options->network_require == shmem::NetworkUse::kRdma;
  if (settings.secret.empty()) {
    return shmem::fail(
        std::errc::invalid_argument,
        "shmem: shmemx_exchange_connect: there is no secret; set SHMEM_UID_SECRET to the same text for all "
        "members");
  }
  if (!take_option(given.answer_ms, kMostAnswerMs, settings.answer_ms) ||
      std::any_of(std::begin(given.reserved), std::end(given.reserved), [](auto value) { return value != 0; })) {
    return shmem::fail(std::errc::invalid_argument,
                       "shmem: shmemx_exchange_connect: answer_ms is too large, or a reserved option is not 0");
  }
  auto place = listening_place(given.listen, *options);
  if (!place) {
    return place.error();
  }
  settings.place = *place;
  std::istringstream members(given.members != nullptr ? given.members : "");
  members.exceptions(std::ios::badbit);  // no memory for an address throws, and does not end the list
  for (std::string text; std::getline(members, text, ',');) {
    auto seed = endpoint_from(text);
    if (!seed) {
      return seed.error();
    }
    settings.seeds.push_back(*seed);
  }
  return settings;
}

}  // namespace

Result<ExchangeSettings> shmem::exchange::settings_from(const shmemx_exchange_options_t* options, const char* call) {
  ExchangeSettings settings;
  const shmemx_exchange_options_t given = options != nullptr ? *options : shmemx_exchange_options_t{};
  const bool reserved = given.reserved[0] != 0 || given.reserved[1] != 0 || given.reserved[2] != 0;
  if (reserved || !take_option(given.blocks, shmem::exchange::kMostSlots, settings.blocks) ||
      !take_option(given.leases, shmem::exchange::kMostLeases, settings.leases) ||
      !take_option(given.lease_ms, 60'000, settings.lease_ms) ||
      !take_option(given.transfers, 4096, settings.transfers) ||
      !take_option(given.join_ms, 60'000, settings.join_ms)) {
    return shmem::fail(std::errc::invalid_argument,
                       fmt::format("shmem: {}: an option is too large, or a reserved one is not 0", call));
  }
  if (given.metrics != nullptr) {
    settings.metrics = given.metrics;
  }
  const auto variables = shmem::process_options();
  if (!variables) {
    return variables.error();
  }
  settings.host_id = variables->host_id;
  settings.folder = given.directory != nullptr ? given.directory : variables->exchange_dir;
  return settings;
}

extern "C" {

int shmemx_exchange_open(const char* name, const shmemx_exchange_options_t* options,
                         shmemx_exchange_t** exchange) noexcept try {
  if (name == nullptr || exchange == nullptr) {
    return refuse(__func__, name == nullptr ? "name is NULL" : "exchange is NULL");
  }
  *exchange = nullptr;
  const auto settings = settings_from(options, __func__);
  if (!settings) {
    return report(settings.error());
  }
  auto opened = Exchange::open(name, *settings);
  if (!opened) {
    return report(opened.error());
  }
  auto handle = std::make_unique<shmemx_exchange_t>();
  handle->client = std::make_unique<HolderClient>(**opened);
  handle->exchange = *std::move(opened);
  *exchange = handle.release();
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_connect(shmemx_exchange_t* exchange, const shmemx_exchange_network_t* network) noexcept try {
  if (exchange == nullptr || network == nullptr) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "network is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto settings = network_from(*network);
  return settings ? code_of(exchange->exchange->connect(*settings)) : report(settings.error());
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_address(shmemx_exchange_t* exchange, char* text, size_t bytes) noexcept try {
  if (exchange == nullptr || text == nullptr) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "text is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const std::string place = exchange->exchange->place();
  if (place.empty()) {
    return report(shmem::fail(std::errc::not_connected,
                              "shmem: shmemx_exchange_address: this member is not connected to other nodes; call "
                              "shmemx_exchange_connect"));
  }
  if (place.size() >= bytes) {
    return report(
        shmem::fail(std::errc::result_out_of_range,
                    fmt::format("shmem: shmemx_exchange_address: {} bytes are too few for {} and a 0", bytes, place)));
  }
  std::memcpy(text, place.c_str(), place.size() + 1);
  return static_cast<int>(place.size());
}
SHMEM_EXCHANGE_CATCH

void shmemx_exchange_close(shmemx_exchange_t* exchange) noexcept {
  const std::unique_ptr<shmemx_exchange_t> owner(exchange);
  if (owner && is_inherited(*owner)) {
    // The copies stay.
    static_cast<void>(owner->holder.release());
    static_cast<void>(owner->client.release());
    static_cast<void>(owner->exchange.release());
  }
}

int shmemx_exchange_members(shmemx_exchange_t* exchange, shmemx_exchange_member_t* members, size_t capacity) noexcept
    try {
  if (exchange == nullptr || (members == nullptr && capacity > 0)) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "members is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return exchange->exchange->members({members, capacity});
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_register(shmemx_exchange_t* exchange, shmemx_memory_t* memory, uint32_t* region) noexcept try {
  if (exchange == nullptr || memory == nullptr || region == nullptr) {
    return refuse(__func__, "exchange, memory or region is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto number = exchange->exchange->register_memory(*memory);
  if (!number) {
    return report(number.error());
  }
  *region = *number;
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_unregister(shmemx_exchange_t* exchange, uint32_t region) noexcept try {
  if (exchange == nullptr) {
    return refuse(__func__, "exchange is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return code_of(exchange->exchange->unregister_memory(region));
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_publish(shmemx_exchange_t* exchange, shmemx_exchange_entry_t* entries, size_t count) noexcept try {
  if (exchange == nullptr || (entries == nullptr && count > 0) || count > kMostAtOnce) {
    return refuse(__func__, "exchange or entries is NULL, or there are more than 2^30");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return exchange->exchange->publish({entries, count});
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_withdraw(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count,
                             uint64_t timeout_ns) noexcept try {
  if (exchange == nullptr || (keys == nullptr && count > 0)) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "keys is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return code_of(exchange->exchange->withdraw({keys, count}, shmem::exchange::limit_of(timeout_ns)));
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_find(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count, uint64_t layout,
                         uint32_t lease_ms, shmemx_exchange_block_t* blocks) noexcept try {
  if (exchange == nullptr || ((keys == nullptr || blocks == nullptr) && count > 0) || count > kMostAtOnce) {
    return refuse(__func__, "exchange, keys or blocks is NULL, or there are more than 2^30");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return exchange->exchange->find({keys, count}, layout, lease_ms, blocks);
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_release(shmemx_exchange_t* exchange, shmemx_exchange_block_t* blocks, size_t count) noexcept try {
  if (exchange == nullptr || (blocks == nullptr && count > 0)) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "blocks is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  exchange->exchange->release({blocks, count});
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_pull(shmemx_exchange_t* exchange, const shmemx_exchange_block_t* blocks, void* const* destinations,
                         size_t count, int32_t* statuses, shmemx_exchange_transfer_t** transfer) noexcept try {
  if (exchange == nullptr || ((blocks == nullptr || destinations == nullptr) && count > 0) || count > kMostAtOnce) {
    return refuse(__func__, "exchange, blocks or destinations is NULL, or there are more than 2^30");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  if (transfer == nullptr) {
    return code_of(exchange->exchange->pull({blocks, count}, destinations, statuses));
  }
  *transfer = nullptr;
  auto handle = std::make_unique<shmemx_exchange_transfer_t>();
  auto started = exchange->exchange->start_pull({blocks, count}, destinations, statuses);
  if (!started) {
    return report(started.error());
  }
  handle->transfer = *std::move(started);
  *transfer = handle.release();
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_test(shmemx_exchange_transfer_t* transfer) noexcept try {
  if (transfer == nullptr) {
    return refuse(__func__, "transfer is NULL");
  }
  if (is_inherited(*transfer)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto outcome = transfer->transfer->wait(std::chrono::nanoseconds{0});
  return outcome ? code_of(*outcome) : -EINPROGRESS;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_wait(shmemx_exchange_transfer_t* transfer, uint64_t timeout_ns) noexcept try {
  if (transfer == nullptr) {
    return refuse(__func__, "transfer is NULL");
  }
  if (is_inherited(*transfer)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto outcome = transfer->transfer->wait(shmem::exchange::limit_of(timeout_ns));
  return outcome
             ? code_of(*outcome)
             : report(shmem::fail(std::errc::timed_out, fmt::format("shmem: {}: the transfer is not over after {} ns",
                                                                    __func__, timeout_ns)));
}
SHMEM_EXCHANGE_CATCH

void shmemx_exchange_transfer_free(shmemx_exchange_transfer_t* transfer) noexcept {
  if (transfer == nullptr || is_inherited(*transfer)) {
    return;  // in a forked process, where the transfer would never be over, the copy stays
  }
  const std::unique_ptr<shmemx_exchange_transfer_t> owner(transfer);
  owner->transfer->finish();
}

int shmemx_exchange_list(shmemx_exchange_t* exchange, uint32_t seat, uint64_t* cursor, shmemx_exchange_name_t* names,
                         shmemx_exchange_block_t* blocks, size_t capacity) noexcept try {
  if (exchange == nullptr || cursor == nullptr || ((names == nullptr || blocks == nullptr) && capacity > 0)) {
    return refuse(__func__, "exchange, cursor, names or blocks is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  const auto listed = exchange->exchange->list(seat, *cursor, {names, std::min(capacity, kMostAtOnce)}, blocks);
  return listed ? *listed : report(listed.error());
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_stats(shmemx_exchange_t* exchange, shmemx_exchange_stats_t* stats) noexcept try {
  if (exchange == nullptr || stats == nullptr) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "stats is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  exchange->exchange->stats(*stats);
  return 0;
}
SHMEM_EXCHANGE_CATCH

int shmemx_exchange_member_stats(shmemx_exchange_t* exchange, uint32_t seat, shmemx_exchange_stats_t* stats) noexcept
    try {
  if (exchange == nullptr || stats == nullptr) {
    return refuse(__func__, exchange == nullptr ? "exchange is NULL" : "stats is NULL");
  }
  if (is_inherited(*exchange)) [[unlikely]] {
    return refuse_child(__func__);
  }
  return code_of(exchange->exchange->member_stats(seat, *stats));
}
SHMEM_EXCHANGE_CATCH

const char* shmemx_error_text() noexcept {
  return shmem::kept_error_text();
}

void shmemx_set_logger(shmemx_logger_t logger) noexcept {
  shmem::set_log_handler(logger);
}
}

SHMEM_EXCHANGE_SECOND_NAME(open)
SHMEM_EXCHANGE_SECOND_NAME(connect)
SHMEM_EXCHANGE_SECOND_NAME(address)
SHMEM_EXCHANGE_SECOND_NAME(close)
SHMEM_EXCHANGE_SECOND_NAME(members)
SHMEM_EXCHANGE_SECOND_NAME(register)
SHMEM_EXCHANGE_SECOND_NAME(unregister)
SHMEM_EXCHANGE_SECOND_NAME(publish)
SHMEM_EXCHANGE_SECOND_NAME(withdraw)
SHMEM_EXCHANGE_SECOND_NAME(find)
SHMEM_EXCHANGE_SECOND_NAME(release)
SHMEM_EXCHANGE_SECOND_NAME(pull)
SHMEM_EXCHANGE_SECOND_NAME(test)
SHMEM_EXCHANGE_SECOND_NAME(wait)
SHMEM_EXCHANGE_SECOND_NAME(transfer_free)
SHMEM_EXCHANGE_SECOND_NAME(list)
SHMEM_EXCHANGE_SECOND_NAME(stats)
SHMEM_EXCHANGE_SECOND_NAME(member_stats)
