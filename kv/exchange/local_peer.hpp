// SPDX-License-Identifier: Apache-2.0
// Another member, whose blocks this one reads.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/disposal.hpp"
#include "kv/exchange/channel.hpp"
#include "kv/exchange/counters.hpp"
#include "kv/exchange/directory_reader.hpp"
#include "kv/exchange/leases.hpp"
#include "kv/exchange/memory.hpp"
#include "shmemx_exchange.h"

namespace shmem::exchange {

using base::Disposal;

using Block = shmemx_exchange_block_t;

constexpr std::size_t kMostRegions = 64;

/// What a member has sent to one that said hello.
struct Offer {
  Channel channel;
  std::uint32_t seat = 0;
  std::vector<Received> regions{};  // before the welcome
  Received welcome{};
};

/// Thread-safe. It may outlive the member's process: what it has mapped stays.
class LocalPeer {
 public:
  /// Takes what it needs of a complete offer; the caller ends the rest by a Disposal. `disposal` outlives the calls of
  /// this, and gets what the member has taken back, or what was not expected of it.
  static Result<std::shared_ptr<LocalPeer>> open(Offer& offer, Disposal& disposal);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::uint32_t seat() const { return seat_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int fd() const { return channel_.fd(); }
  [[nodiscard]] const DirectoryReader& directory() const { return directory_; }
  [[nodiscard]] std::uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }
  // Relaxed: a call that has not seen the end yet reads memory that is still mapped.
  [[nodiscard]] bool is_alive() const { return alive_.load(std::memory_order_relaxed); }

  /// Takes the messages that have come. An error ends this peer, but for EMFILE: this process has too few descriptors
  /// for those of the next message, or too many wait to be closed; the message stays.
  std::errc receive();
  /// The thread of Members sees that, too: its poll() returns.
  void end() {
    alive_.store(false, std::memory_order_relaxed);
    channel_.shut();
  }

  /// Fills `block` if the key is found. With lease_ms > 0 it is leased; over quota: it has none, and status EDQUOT.
  DirectoryReader::Outcome find(const Key& key, std::uint64_t layout, std::uint32_t lease_ms, Block& block);
  void release(Block& block);
  void describe(const Found& found, Block& block) const;

  /// Sets a status for each block. REQUIRES: they are of this member.
  void pull(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses);

 private:
  using Memory = std::shared_ptr<const PeerMemory>;
  class Batch;

  LocalPeer(Offer& offer, DirectoryReader directory, base::Mapping leases, Disposal& disposal);
  bool lease(Block& block, std::uint32_t lease_ms);
  /// Null: the member has no such region; or `error` is EMFILE.
  Memory memory(std::uint32_t region, std::errc& error);
  std::errc take(Received& received);
  std::errc refuse() {
    add(refusals_);
    return std::errc::bad_message;
  }

  const std::uint64_t id_;
  const std::uint32_t seat_;
  const pid_t pid_;
  const std::uint32_t lease_ms_;  // the longest
  const DirectoryReader directory_;
  Leases leases_;
  Disposal& disposal_;
  std::mutex mutex_;  // for the next, up to alive_
  Channel channel_;
  const std::shared_ptr<MappingRoom> room_ = std::make_shared<MappingRoom>(MappingRoom::most());
  std::unordered_map<std::uint32_t, Memory> memories_;  // by region
  std::size_t refused_regions_ = 0;
  std::atomic<bool> alive_{true};
  Counters::Count refusals_{0};
};

}  // namespace shmem::exchange
