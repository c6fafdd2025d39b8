// SPDX-License-Identifier: Apache-2.0
// hold, pin, unpin: the holder of an exchange.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/size_text.hpp"
#include "tools/kv_exchange/commands.hpp"
#include "tools/kv_exchange/events.hpp"

namespace kv_exchange {
namespace {

/// Sends events to those who connect, until a signal comes.
Result<void> serve_events(const Options& options, EventServer& server, const EndSignals& ends) {
  // Members do not see themselves.
  auto reader = Member::open(options.exchange);
  if (!reader) {
    return reader.error();
  }
  while (!ends.ended(0)) {
    server.turn(*reader);
  }
  return {};
}

}  // namespace

Result<void> hold(const Options& options) {
  const EndSignals ends;
  std::vector<shmemx_exchange_tenant_t> tenants;
  for (const auto& [name, bytes] : options.tenants) {
    tenants.push_back({name.c_str(), bytes});
  }
  const shmemx_exchange_holding_t holding{
      .bytes = options.bytes, .tenants = tenants.data(), .tenant_count = tenants.size(), .reserved = {0, 0, 0, 0}};
  std::optional<EventServer> server;
  if (!options.events.empty()) {
    auto listening = EventServer::listen(options.events);
    if (!listening) {
      return listening.error();
    }
    server = *std::move(listening);
  }
  const char* const metrics = options.metrics.empty() ? nullptr : options.metrics.c_str();
  auto member =
      Member::hold(options, {options.blocks, 0, options.lease_ms, 0, 0, {0, 0, 0}, metrics, nullptr}, holding);
  if (!member) {
    return member.error();
  }
  const auto stats = member->stats();
  const std::string address = member->address();
  say("kv_exchange: holding {} for exchange {} on seat {}{}\n", base::size_text(options.bytes), options.exchange,
      stats.seat, address.empty() ? "" : ", at " + address);
  if (stats.metrics_port != 0) {
    say("kv_exchange: metrics: /metrics on port {}\n", stats.metrics_port);
  }
  if (server) {
    say("kv_exchange: events: on port {}\n", server->port());
  }
  std::fflush(stdout);
  if (server) {
    return serve_events(options, *server, ends);
  }
  constexpr double kLong = 3600;  // seconds
  while (!ends.ended(kLong)) {
  }
  return {};
}

Result<void> pin(const Options& options, bool pinned) {
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  member->use_holder(options);
  const shmemx_exchange_key_t key{options.key.data(), options.key.size()};
  int count = 0;
  for (const auto& other : member->others()) {
    for (const auto& [listed, block] : member->list(other.seat, options.key)) {
      std::int32_t status = 0;
      if (listed != options.key) {
        continue;
      }
      const int code = shmemx_exchange_pin(member->get(), &key, 1, block.layout, pinned ? 1 : 0, &status);
      if (code < 0) {
        return error_of(code);
      }
      if (status != 0 && status != -ENOENT) {
        return base::fail_errno(-status, "cannot pin " + printable(options.key));
      }
      count += code;
    }
  }
  return count > 0 ? Result<void>()
                   : fail(std::errc::no_such_file_or_directory, fmt::format("the holder of exchange {} has no block {}",
                                                                            options.exchange, printable(options.key)));
}

}  // namespace kv_exchange
