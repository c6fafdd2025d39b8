// SPDX-License-Identifier: Apache-2.0
// A member of an exchange: what shmemx_exchange.h describes, in C++.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/exchange/counters.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "kv/exchange/members.hpp"
#include "kv/exchange/metrics.hpp"
#include "kv/exchange/metrics_server.hpp"
#include "kv/exchange/remote_members.hpp"
#include "kv/exchange/transfers.hpp"
#include "shmem/result.hpp"
#include "shmemx_exchange.h"

namespace shmem::exchange {

struct ExchangeSettings {
  std::uint32_t blocks = 65536;
  std::uint32_t leases = 64;
  std::uint32_t lease_ms = 1000;
  std::uint32_t transfers = 64;
  std::uint32_t join_ms = 1000;
  std::optional<std::string> metrics{};  // the address
  std::string host_id{};                 // SHMEM_HOST_ID: members with different ones count as on different nodes
  std::string folder{};                  // MeetingPlace::folder
  bool holds = false;                    // it is the holder: holder.hpp
};

/// How a member reaches those on other nodes.
struct NetworkSettings {
  Endpoint place;  // where it listens
  std::vector<Endpoint> seeds{};
  std::string secret{};
  std::uint32_t answer_ms = 5000;
  bool rdma_only = false;
};

/// The limit that a call of C passes.
constexpr std::chrono::nanoseconds limit_of(std::uint64_t timeout_ns) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
  return timeout_ns < static_cast<std::uint64_t>(kLongest.count())
             ? std::chrono::nanoseconds(static_cast<std::int64_t>(timeout_ns))
             : kLongest;
}

/// Letters, digits, '.', '_' and '-', up to kMostNameBytes: of an exchange, where it is not empty, or of a tenant.
bool is_plain_name(std::string_view name);

/// Thread-safe.
class Exchange {
 public:
  static Result<std::unique_ptr<Exchange>> open(const std::string& name, const ExchangeSettings& settings);

  /// Once. Afterwards all other calls also concern members on other nodes.
  Result<void> connect(const NetworkSettings& settings);
  /// Where it listens; empty: connect() has not been called.
  [[nodiscard]] std::string place() const;

  Result<std::uint32_t> register_memory(shmemx_memory_t& memory);
  Result<void> unregister_memory(std::uint32_t region);

  /// Sets a status for each; returns the number published.
  int publish(std::span<shmemx_exchange_entry_t> entries);
  Result<void> withdraw(std::span<const shmemx_exchange_key_t> keys, std::chrono::nanoseconds limit);

  int find(std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout, std::uint32_t lease_ms, Block* blocks);
  void release(std::span<Block> blocks);
  /// `statuses` may be null.
  Result<void> pull(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses);
  Result<TransferPointer> start_pull(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses);

  // For the holder, which alone publishes and withdraws here. Entries are told apart by key and layout.

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const ExchangeSettings& settings() const { return settings_; }
  [[nodiscard]] MeetingPlace place_of_node() const;
  /// More metrics than those of the exchange. Empty: none from now on.
  void add_metrics(WriteMetrics write);
  std::errc publish_held(const Key& key, const BlockPlace& place, std::uint32_t& slot);
  [[nodiscard]] std::optional<std::uint32_t> held(const Key& key, std::uint64_t layout) const;
  [[nodiscard]] std::optional<std::uint32_t> held_in_any_layout(const Key& key) const;
  [[nodiscard]] Key held_key(std::uint32_t slot) const;
  DirectoryWriter::Withdrawn withdraw_held(std::uint32_t slot);
  /// False: a reader has a lease of it; call again.
  bool remove_held(const DirectoryWriter::Withdrawn& withdrawn);
  /// A reader has a lease of it.
  [[nodiscard]] bool is_read(std::uint32_t slot) const;
  /// A reader has used it since the last call.
  [[nodiscard]] bool take_use(std::uint32_t slot) const { return members_->readers().take_use(slot); }
  /// The slots below `end` that readers have used since the last call, up to about `most` of each reader.
  std::vector<std::uint32_t> take_used(std::uint32_t end, std::size_t most) const {
    return members_->readers().take_used(end, most);
  }

  /// The member of this node with this id has published the block. It then counts as used.
  [[nodiscard]] bool has_published(std::uint64_t member, const Key& key, std::uint64_t layout,
                                   std::uint64_t bytes) const;

  int members(std::span<shmemx_exchange_member_t> members) const;
  Result<int> list(std::uint32_t seat, std::uint64_t& cursor, std::span<shmemx_exchange_name_t> names, Block* blocks);
  void stats(shmemx_exchange_stats_t& stats) const;
  Result<void> member_stats(std::uint32_t seat, shmemx_exchange_stats_t& stats) const;

 private:
  struct Region {
    FileRange range;
    base::Mapping made;  // by the exchange; else none
  };

  Exchange(std::string name, std::uint64_t id, const ExchangeSettings& settings, DirectoryWriter directory);
  static Error problem(std::errc code, std::string text);
  Result<void> start_metrics(const std::string& address);
  [[nodiscard]] bool is_leased(std::uint32_t slot, std::uint32_t now) const;
  /// Null: this member is not connected to other nodes.
  [[nodiscard]] RemoteMembers* remote() const { return remote_now_.load(std::memory_order_acquire); }
  int find_remote(std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout, std::uint32_t lease_ms,
                  Block* blocks);
  std::errc publish_one(const shmemx_exchange_entry_t& entry);
  /// Once no reader has a lease of the block; or it has been removed by another call.
  bool remove_withdrawn(const DirectoryWriter::Withdrawn& withdrawn);
  void pull_all(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses);
  /// The outcome of a pull.
  Result<void> count_pulled(std::span<const Block> blocks, const std::int32_t* statuses);
  void count_failure(std::int32_t status);

  const std::string name_;
  const std::uint64_t id_;
  const ExchangeSettings settings_;
  const std::unique_ptr<CallTimes> times_;  // null: without metrics
  mutable std::mutex mutex_;                // for the next three
  DirectoryWriter directory_;
  std::map<std::uint32_t, Region> regions_;
  std::uint32_t last_region_ = 0;
  Counters& counters_;  // of the directory
  std::unique_ptr<Members> members_;
  std::mutex connect_mutex_;  // for the next
  std::unique_ptr<RemoteMembers> remote_;
  std::atomic<RemoteMembers*> remote_now_{nullptr};  // that, once it is complete
  std::mutex more_metrics_mutex_;                    // for the next
  WriteMetrics more_metrics_;
  // Last: they use the others.
  std::unique_ptr<Transfers> transfers_;         // of blocks of this node only
  std::unique_ptr<Transfers> remote_transfers_;  // the others, which may wait long for a member that does not answer
  std::unique_ptr<MetricsServer> metrics_;
  std::atomic<std::uint16_t> metrics_port_{0};  // of that; its thread reads it, too
  std::atomic<bool> has_warned_of_memory_{false};
};

}  // namespace shmem::exchange
