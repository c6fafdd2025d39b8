// SPDX-License-Identifier: Apache-2.0
// What the holder has stored and removed, in the order in which it happened: a ring in memory that the holder alone
// writes. So a process that reads slowly, or not at all, costs the holder nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "base/versioned.hpp"
#include "kv/exchange/key.hpp"
#include "shmem/result.hpp"
#include "shmemx_exchange.h"

namespace shmem::exchange {

constexpr std::size_t kEvents = std::size_t{1} << 16;

/// `version` is 2n while it has event n. Numbers begin with 1.
struct alignas(64) EventSlot {
  base::Version version;
  std::atomic<std::uint64_t> kind_and_key_bytes;  // upper and lower half
  std::atomic<std::uint64_t> layout;
  std::atomic<std::uint64_t> bytes;
  std::array<std::atomic<std::uint64_t>, kKeyWords> key;
};
static_assert(sizeof(EventSlot) == 192);

struct EventRing {
  std::atomic<std::uint64_t> last;  // the number of the last event; 0: none
  std::array<EventSlot, kEvents> slots;
};

/// Used by one thread.
class HolderEvents {
 public:
  static Result<HolderEvents> create();

  /// For readers, which can only read it.
  [[nodiscard]] int file() const { return file_.get(); }
  /// `kind`: SHMEMX_EXCHANGE_STORED or _REMOVED.
  void add(std::uint32_t kind, const Key& key, std::uint64_t layout, std::uint64_t bytes);

 private:
  [[nodiscard]] EventRing& ring() const { return *reinterpret_cast<EventRing*>(memory_.data()); }

  base::UniqueFd file_;
  base::Mapping memory_;
};

/// The events of a holder, which may write anything. Thread-safe.
class HolderEventReader {
 public:
  HolderEventReader() = default;
  /// An Error if others than its owner can write it, or its size can change.
  static Result<HolderEventReader> open(int file);

  [[nodiscard]] std::uint64_t last() const { return ring().last.load(std::memory_order_acquire); }
  /// The events after number `after`, up to the size of `events`; moves `after` past them. False: some have been
  /// overwritten already.
  bool read(std::uint64_t& after, std::span<shmemx_exchange_event_t> events, std::size_t& count) const;

 private:
  [[nodiscard]] const EventRing& ring() const { return *reinterpret_cast<const EventRing*>(memory_.data()); }
  bool read_one(std::uint64_t number, shmemx_exchange_event_t& event) const;

  base::Mapping memory_;
};

}  // namespace shmem::exchange
