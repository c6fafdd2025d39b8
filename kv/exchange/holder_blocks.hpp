// SPDX-License-Identifier: Apache-2.0
// The blocks of a holder: where they are in its memory, whose they are, and which goes when there is no room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "kv/exchange/exchange.hpp"
#include "kv/exchange/holder_arena.hpp"
#include "kv/exchange/holder_events.hpp"

namespace shmem::exchange {

/// Those that share a limit. They are numbered in the order in which they came.
constexpr std::size_t kMostTenants = 256;

struct TenantLimit {
  std::string name;
  std::uint64_t bytes = 0;
};

/// What a tenant has, for people.
struct TenantUse {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t limit = 0;
};

/// Memory whose pages are taken as they are needed, so that a lack of them is an error and not the end of the process.
class HolderMemory {
 public:
  HolderMemory(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return memory_ + offset; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t grown() const { return grown_; }
  /// Further pages for `least` bytes or more. Nothing: that is all, or this machine or control group has no more.
  std::optional<Part> grow(std::uint64_t least);

 private:
  std::byte* memory_;
  std::uint64_t bytes_;
  std::uint64_t grown_ = 0;
  std::chrono::steady_clock::time_point next_look_{};
};

/// Used by one thread.
///
/// The order of eviction is that of use: of puts, which this sees, and of reads, which it does not. Readers set a bit
/// for a block (leases.hpp), and note_use() takes those. Within a time between two of its calls, reads count as earlier
/// than puts.
class HeldBlocks {
 public:
  /// A range of memory that is being written: nothing is published of it yet.
  struct Writing {
    Key key;
    std::uint64_t layout = 0;
    std::uint64_t bytes = 0;
    std::uint64_t begin = 0;  // of the range
    std::uint32_t tenant = 0;
    bool pin = false;
  };

  HeldBlocks(Exchange& exchange, std::uint32_t region, HolderMemory memory, HolderEvents events,
             const std::vector<TenantLimit>& tenants);

  /// The number of a tenant. Those that come when there are kMostTenants are the one without a name.
  std::uint32_t tenant(std::string_view name);
  [[nodiscard]] std::uint64_t most_bytes() const { return most_bytes_; }
  [[nodiscard]] int events() const { return events_.file(); }

  /// Makes room for a block. Errors: EEXIST it is there; EBUSY another one writes it; EMSGSIZE it is there with another
  /// size, or too large for the tenant; EDQUOT the tenant's other blocks cannot be evicted, or too much is pinned;
  /// ENOSPC nothing can be evicted; ENOMEM.
  std::errc begin(Writing& writing);
  [[nodiscard]] std::byte* memory_of(const Writing& writing) const { return memory_.at(writing.begin); }
  /// Publishes what has been written. Errors: EBUSY a block of this key and layout was evicted, and is still read;
  /// ENOSPC, ENOMEM.
  std::errc publish(const Writing& writing);
  /// The range is free, unless it has been published or given back.
  void give_back(const Writing& writing);

  /// Errors: ENOENT; EBUSY it is pinned. `layout` 0: those of all layouts.
  std::errc discard(const Key& key, std::uint64_t layout);
  /// Errors: ENOENT; EDQUOT more than half of the memory would be pinned.
  std::errc set_pinned(const Key& key, std::uint64_t layout, bool pinned);
  /// Evicts blocks of a tenant that are not pinned, up to a number. True: there are more.
  bool clear(std::uint32_t tenant);

  /// Takes note of what readers have used. Now and then: it looks at all bits.
  void note_use();
  /// Takes the memory of evicted blocks that no reader has a lease of any more.
  void end_leaving();
  [[nodiscard]] bool has_leaving() const { return !leaving_.empty(); }

  void describe(shmemx_exchange_holder_stats_t& stats) const;
  [[nodiscard]] std::vector<TenantUse> tenants() const;

 private:
  using Order = std::list<std::uint32_t>;  // slots
  struct Tenant {
    std::string name;
    std::uint64_t limit = 0;
    std::uint64_t bytes = 0;  // of blocks, and of ranges that are written
    Order order{};            // the next to go first
    Order recent{};           // since the last note_use(), the next to go first
    Order pinned{};
  };
  /// The block in a slot of the directory.
  struct Held {
    std::uint64_t layout = 0;
    std::uint64_t bytes = 0;
    std::uint64_t begin = 0;
    std::uint64_t used = 0;  // when: a number that grows
    std::uint64_t turn = 0;  // of note_use(): in the present one it is recent
    std::uint32_t tenant = 0;
    bool pinned = false;
    Order::iterator place{};  // in list_of()
    [[nodiscard]] std::uint64_t size() const { return HolderArena::rounded(bytes); }
  };
  struct Leaving {
    DirectoryWriter::Withdrawn withdrawn;
    Part part;
  };

  std::errc check(const Writing& writing);
  std::errc make_room(Tenant& tenant, std::uint64_t size, std::uint64_t& begin);
  std::optional<std::uint32_t> victim(Tenant* only);
  Tenant* oldest_tenant();
  Order& list_of(const Held& held);
  void defer(std::uint32_t slot);
  [[nodiscard]] bool is_here(std::uint32_t slot) const;
  static std::optional<std::uint32_t> next_of(const Tenant& tenant);
  bool evict(std::uint32_t slot);
  void evict_around(std::uint64_t place, std::uint64_t size);
  bool is_recent(std::uint32_t slot);
  bool make_room_of(Tenant& tenant, std::uint64_t size);
  bool evict_at(std::map<std::uint64_t, std::uint32_t>::iterator range);
  void touch(std::uint32_t slot);
  std::errc publish_with_room(const Writing& writing, std::uint32_t& slot);

  Exchange& exchange_;
  const std::uint32_t region_;
  HolderMemory memory_;
  HolderEvents events_;
  const std::uint64_t most_bytes_;
  HolderArena arena_;
  std::deque<Tenant> tenants_;
  std::vector<Held> held_;                         // by slot
  std::map<std::uint64_t, std::uint32_t> ranges_;  // slots of blocks by the begin of their range
  std::vector<const Writing*> writing_;
  std::vector<Leaving> leaving_;
  std::uint64_t clock_ = 0;
  std::uint64_t turn_ = 1;        // of note_use()
  std::uint64_t turn_clock_ = 0;  // when it began
  std::uint64_t pinned_bytes_ = 0;
  std::uint64_t writing_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t stored_ = 0, there_already_ = 0, evicted_ = 0, discarded_ = 0, refused_ = 0;
};

}  // namespace shmem::exchange
