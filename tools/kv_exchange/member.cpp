// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_exchange/member.hpp"

#include <algorithm>
#include <cstring>

#include "shmemx.h"

namespace kv_exchange {
namespace {

shmemx_exchange_key_t key_of(const std::string& key) {
  return {key.data(), key.size()};
}

/// What a status means, for the commands.
Error status_error(const std::string& doing, const std::string& key, std::int32_t status) {
  return base::fail_errno(-status, doing + " " + key);
}

}  // namespace

Error error_of(int code) {
  return fail(static_cast<std::errc>(-code), shmemx_error_text());
}

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = 0xcbf2'9ce4'8422'2325U ^ bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t part = std::min(sizeof word, bytes.size());
    std::memcpy(&word, bytes.data(), part);
    digest = (digest ^ word) * 0x9e37'79b9'7f4a'7c15U;
    digest ^= digest >> 29;
    bytes = bytes.subspan(part);
  }
  return digest != 0 ? digest : 1;
}

Result<Member> Member::open(const std::string& exchange, const shmemx_exchange_options_t& options) {
  shmemx_exchange_t* opened = nullptr;
  if (const int code = shmemx_exchange_open(exchange.c_str(), &options, &opened); code != 0) {
    return error_of(code);
  }
  return Member(opened);
}

Result<Member> Member::open(const Options& command, const shmemx_exchange_options_t& options) {
  auto member = open(command.exchange, options);
  const auto connected = member ? member->connect(command, options.join_ms) : member.error();
  return connected ? std::move(member) : connected.error();
}

Result<Member> Member::hold(const Options& command, const shmemx_exchange_options_t& options,
                            const shmemx_exchange_holding_t& holding) {
  shmemx_exchange_t* opened = nullptr;
  if (const int code = shmemx_exchange_hold(command.exchange.c_str(), &options, &holding, &opened); code != 0) {
    return error_of(code);
  }
  Member member(opened);
  const auto connected = member.connect(command, options.join_ms);
  return connected ? Result<Member>(std::move(member)) : connected.error();
}

Result<void> Member::connect(const Options& command, std::uint32_t answer_ms) {
  if (command.listen.empty() && command.members.empty()) {
    return {};
  }
  std::string members;
  for (const auto& address : command.members) {
    members += (members.empty() ? "" : ",") + address;
  }
  // The secret is in SHMEM_UID_SECRET: other users see command lines.
  const shmemx_exchange_network_t network{.listen = command.listen.empty() ? nullptr : command.listen.c_str(),
                                          .members = members.c_str(),
                                          .secret = nullptr,
                                          .answer_ms = answer_ms,
                                          .reserved = {0, 0, 0, 0, 0}};
  const int code = shmemx_exchange_connect(get(), &network);
  return code == 0 ? Result<void>() : error_of(code);
}

void Member::use_holder(const Options& command) {
  const auto limit = static_cast<std::uint32_t>(std::clamp(command.limit * 1000, 1.0, 60'000.0));
  shmemx_exchange_use_holder(get(), command.tenant.c_str(), limit);
}

std::string Member::address() const {
  char text[64] = "";
  return shmemx_exchange_address(get(), text, sizeof text) > 0 ? text : "";
}

Result<std::pair<std::uint32_t, std::byte*>> Member::make_memory(std::size_t bytes) {
  shmemx_memory_t memory{.address = nullptr, .bytes = bytes, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  if (const int code = shmemx_exchange_register(get(), &memory, &region); code != 0) {
    return error_of(code);
  }
  return std::pair(region, static_cast<std::byte*>(memory.address));
}

Result<void> Member::publish(const std::string& key, std::uint32_t region, std::size_t offset,
                             std::span<const std::byte> bytes) {
  shmemx_exchange_entry_t entry{.key = key_of(key),
                                .region = region,
                                .status = 0,
                                .offset = offset,
                                .bytes = bytes.size(),
                                .layout = digest_of(bytes)};
  const int published = shmemx_exchange_publish(get(), &entry, 1);
  return published == 1 ? Result<void>() : status_error("cannot publish", key, entry.status);
}

Result<void> Member::withdraw(const std::string& key, std::uint64_t timeout_ns) {
  const auto name = key_of(key);
  const int code = shmemx_exchange_withdraw(get(), &name, 1, timeout_ns);
  return code == 0 ? Result<void>() : error_of(code);
}

Result<shmemx_exchange_block_t> Member::find(const std::string& key, std::uint64_t layout) {
  const auto name = key_of(key);
  shmemx_exchange_block_t block{};
  if (shmemx_exchange_find(get(), &name, 1, layout, 0, &block) != 1) {
    return status_error("cannot find", key, block.status);
  }
  return block;
}

bool Member::has(const std::string& key, std::uint64_t layout) {
  return find(key, layout).has_value();
}

Result<void> Member::pull(const shmemx_exchange_block_t& block, std::byte* to) {
  void* const destination = to;
  const int code = shmemx_exchange_pull(get(), &block, &destination, 1, nullptr, nullptr);
  return code == 0 ? Result<void>() : error_of(code);
}

std::vector<shmemx_exchange_member_t> Member::others() {
  std::vector<shmemx_exchange_member_t> members(std::size_t{SHMEMX_EXCHANGE_MOST_MEMBERS} +
                                                SHMEMX_EXCHANGE_MOST_REMOTE_MEMBERS);
  const int count = shmemx_exchange_members(get(), members.data(), members.size());
  members.resize(std::min(members.size(), static_cast<std::size_t>(std::max(count, 0))));
  return members;
}

std::vector<Listed> Member::list(std::uint32_t seat, std::string_view prefix) {
  constexpr std::size_t kAtOnce = 256;
  std::vector<shmemx_exchange_name_t> names(kAtOnce);
  std::vector<shmemx_exchange_block_t> blocks(kAtOnce);
  std::vector<Listed> listed;
  std::uint64_t cursor = 0;
  int count = 0;
  while ((count = shmemx_exchange_list(get(), seat, &cursor, names.data(), blocks.data(), kAtOnce)) > 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const std::string_view key(reinterpret_cast<const char*>(names[i].data), names[i].bytes);
      if (key.starts_with(prefix)) {
        listed.push_back({std::string(key), blocks[i]});
      }
    }
  }
  return listed;
}

shmemx_exchange_stats_t Member::stats() {
  shmemx_exchange_stats_t stats{};
  shmemx_exchange_stats(get(), &stats);
  return stats;
}

Result<shmemx_exchange_stats_t> Member::stats_of(std::uint32_t seat) {
  shmemx_exchange_stats_t stats{};
  const int code = shmemx_exchange_member_stats(get(), seat, &stats);
  return code == 0 ? Result<shmemx_exchange_stats_t>(stats) : error_of(code);
}

}  // namespace kv_exchange
