// SPDX-License-Identifier: Apache-2.0
// hold, pin, unpin, events: the holder of an exchange, and what it has stored.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/size_text.hpp"
#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {
namespace {

/// Between two attempts to reach a holder that is not there.
constexpr double kBetweenTries = 0.2;  // seconds
constexpr std::size_t kEventsAtOnce = 256;
constexpr auto kLost = static_cast<std::errc>(EOVERFLOW);

std::string line_of(const char* what, std::uint64_t number, std::uint64_t layout, std::uint64_t bytes,
                    const std::string& key) {
  return fmt::format("{} {} {:x} {} {}\n", what, number, layout, bytes, printable(key));
}

/// What the holder has stored and removed, as lines: a list of its blocks first, and again whenever events were lost.
class Follower {
 public:
  explicit Follower(Member member) : member_(std::move(member)) {}

  /// Prints what has happened since the last call. False: there is no holder at the moment.
  Result<bool> follow() {
    events_.resize(kEventsAtOnce);
    const int count = shmemx_exchange_events(member_.get(), &position_, events_.data(), events_.size(), 50'000'000);
    if (count < 0) {
      const Error error = error_of(count);
      if (error.code == kLost) {
        return list();
      }
      return error.code == std::errc::protocol_not_supported ? Result<bool>(error) : Result<bool>(false);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const shmemx_exchange_event_t& event = events_[i];
      say("{}", line_of(event.kind == SHMEMX_EXCHANGE_STORED ? "stored" : "removed", event.number, event.layout,
                        event.bytes, std::string(reinterpret_cast<const char*>(event.key.data), event.key.bytes)));
    }
    return std::fflush(stdout) == 0 ? Result<bool>(true) : base::fail_errno(errno, "standard output");
  }

 private:
  Result<bool> list() {
    for (const auto& other : member_.others()) {
      if (other.id != position_.holder) {
        continue;
      }
      say("begin {} {:x}\n", position_.number, position_.holder);
      for (const auto& [key, block] : member_.list(other.seat)) {
        say("{}", line_of("block", position_.number, block.layout, block.bytes, key));
      }
      say("live {} {:x}\n", position_.number, position_.holder);
      return std::fflush(stdout) == 0 ? Result<bool>(true) : base::fail_errno(errno, "standard output");
    }
    position_ = {};  // its directory has not arrived: ask again
    return false;
  }

  Member member_;
  shmemx_exchange_position_t position_{};
  std::vector<shmemx_exchange_event_t> events_;
};

}  // namespace

Result<void> hold(const Options& options) {
  const EndSignals ends;
  std::vector<shmemx_exchange_tenant_t> tenants;
  for (const auto& [name, bytes] : options.tenants) {
    tenants.push_back({name.c_str(), bytes});
  }
  const shmemx_exchange_holding_t holding{
      .bytes = options.bytes, .tenants = tenants.data(), .tenant_count = tenants.size(), .reserved = {0, 0, 0, 0}};
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
  std::fflush(stdout);
  constexpr double kLong = 3600;  // seconds
  while (!ends.ended(kLong)) {
  }
  return {};
}

Result<void> pin(const Options& options, bool pinned) {
  auto member = Member::open(options, {1, 0, 0, 0, 0, {0, 0, 0}, nullptr, nullptr});
  if (!member) {
    return member.error();
  }
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

Result<void> events(const Options& options) {
  const EndSignals ends;
  auto member = Member::open(options, {1, 0, 0, 0, 0, {0, 0, 0}, nullptr, nullptr});
  if (!member) {
    return member.error();
  }
  Follower follower(*std::move(member));
  bool has_said = false;
  while (!ends.ended(0)) {
    const auto there = follower.follow();
    if (!there) {
      return there.error();
    }
    if (!*there && !std::exchange(has_said, true)) {
      std::fprintf(stderr, "kv_exchange: waiting for the holder of exchange %s\n", options.exchange.c_str());
    }
    if (!*there && ends.ended(kBetweenTries)) {
      break;
    }
    has_said = has_said && !*there;
  }
  return {};
}

}  // namespace kv_exchange
