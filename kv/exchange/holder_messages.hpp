// SPDX-License-Identifier: Apache-2.0
// What engines and the holder of an exchange say to each other: whole messages over a Unix socket. Each side checks all
// that it reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "kv/exchange/key.hpp"
#include "kv/exchange/meeting_place.hpp"
#include "shmem_compat.h"
#include "shmemx_exchange.h"

namespace shmem::exchange {

/// The socket of the holder: MeetingPlace.
constexpr const char* kHolderEnd = "holder";
static_assert(std::string_view(kHolderEnd).size() <= kMostEndBytes);

/// The first bytes of each message. The lowest byte changes with the protocol.
constexpr std::uint32_t kHolderProtocol = 0x6b'76'68'01;

enum class HolderKind : std::uint32_t {
  kAttach = 1,  // an engine's first message: HolderAttach
  kAttached,    // the answer: HolderAttached; descriptors: staging memory, events
  kRefused,     // the answer if the engine cannot attach: HolderRefused
  kPut,         // HolderItems
  kDiscard,     // HolderItems
  kPin,         // HolderItems
  kUnpin,       // HolderItems
  kStatuses,    // the answer to those: HolderStatuses
  kClear,       // no more than the head. The answer is kCleared
  kCleared,     // `count`: 0 all are gone; 1 ask again
  kAskStats,    // no more than the head
  kStats        // the answer: HolderStatsAnswer
};

/// A version that people can tell from another.
constexpr std::size_t kVersionBytes = 16;

struct HolderHead {
  std::uint32_t protocol = kHolderProtocol;
  HolderKind kind{};
  std::array<char, kVersionBytes> version{};  // of kAttach and kRefused, in all versions of the protocol
  std::uint64_t number = 0;                   // of the request, which its answer repeats
  std::uint32_t count = 0;                    // of items
  std::int32_t code = 0;                      // of kRefused: a negative errno
};
static_assert(sizeof(HolderHead) == 40);

struct HolderAttach {
  HolderHead head;
  std::array<char, kMostNameBytes + 16> tenant{};  // ends with a 0
};

struct HolderAttached {
  HolderHead head;
  std::uint64_t member = 0;         // the holder's id in the exchange
  std::uint64_t staging_bytes = 0;  // of the engine's staging memory: two halves
  std::uint64_t most_bytes = 0;     // of a block
};

struct HolderRefused {
  HolderHead head;
  std::array<char, 256> text{};  // ends with a 0
};

/// Bits of HolderItem::flags.
constexpr std::uint32_t kPinned = 1;

/// A block, or a part of one that is larger than half of the staging memory. Parts of a block come one after the other.
struct HolderItem {
  std::uint64_t layout = 0;
  std::uint64_t bytes = 0;   // of the block
  std::uint64_t at = 0;      // of the part in the block
  std::uint64_t part = 0;    // bytes of the part
  std::uint64_t offset = 0;  // of the part in the staging memory
  std::uint32_t key_bytes = 0;
  std::uint32_t flags = 0;
  std::array<std::uint8_t, kMostKeyBytes> key{};
};
static_assert(sizeof(HolderItem) == 176);

constexpr std::size_t kMostItems = 64;

struct HolderItems {
  HolderHead head;
  std::array<HolderItem, kMostItems> items;
};
struct HolderStatuses {
  HolderHead head;
  std::array<std::int32_t, kMostItems> statuses{};
};
struct HolderStatsAnswer {
  HolderHead head;
  shmemx_exchange_holder_stats_t stats{};
};

/// The bytes of a message with `count` of its items.
constexpr std::size_t bytes_of_items(std::size_t count) {
  return sizeof(HolderHead) + count * sizeof(HolderItem);
}
constexpr std::size_t bytes_of_statuses(std::size_t count) {
  return sizeof(HolderHead) + count * sizeof(std::int32_t);
}

/// Room for any message.
struct HolderBuffer {  // NOLINT(cppcoreguidelines-pro-type-member-init): a message overwrites it
  alignas(8) std::array<std::byte, sizeof(HolderItems)> bytes;
  std::size_t size = 0;

  /// Null: it is smaller. Items that it does not have are not to be read.
  template <typename T>
  [[nodiscard]] const T* as(std::size_t least = sizeof(T)) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(bytes));
    return size >= least ? reinterpret_cast<const T*>(bytes.data()) : nullptr;
  }
};

/// Copies a text into a field that ends with a 0.
template <std::size_t N>
void set_text(std::array<char, N>& field, std::string_view text) {
  field.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), N - 1), field.begin());
}
/// The text of a field, which may come from another process.
template <std::size_t N>
std::string_view text_in(const std::array<char, N>& field) {
  return {field.data(), static_cast<std::size_t>(std::find(field.begin(), field.end(), '\0') - field.begin())};
}

inline HolderHead holder_head(HolderKind kind, std::uint64_t number, std::uint32_t count = 0) {
  HolderHead head;
  head.kind = kind;
  head.number = number;
  head.count = count;
  set_text(head.version, std::to_string(LIBSHMEM_MAJOR_VERSION) + "." + std::to_string(LIBSHMEM_MINOR_VERSION) + "." +
                             std::to_string(LIBSHMEM_PATCH_VERSION));
  return head;
}

}  // namespace shmem::exchange
