// SPDX-License-Identifier: Apache-2.0
// What members on different nodes ask and answer. Each message is a head and a body of items, as they stand in memory:
// the nodes have the same byte order. A receiver trusts no number of it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "kv/exchange/key.hpp"
#include "wire/message_port.hpp"

namespace shmem::exchange {

using wire::kLongestBody;
using wire::kMessageHeadBytes;
using wire::MessagePort;
using wire::PortMessage;

static_assert(std::endian::native == std::endian::little, "messages between nodes are copied as they stand in memory");

/// It changes with the messages.
constexpr std::uint32_t kRemoteProtocol = 0x6b'76'72'01;

enum class RemoteKind : std::uint32_t {
  // A reader sends these. Each but kRelease gets an answer with its number.
  kFind = 1,      // `count` keys, each a u32 size and its bytes; `first`: the layout; `second`: lease_ms
  kPull = 2,      // `count` PullItems
  kRelease = 3,   // `count` ReleaseItems; no answer
  kList = 4,      // `first`: the cursor; `second`: the most entries
  kDescribe = 5,  // nothing
  // An owner sends these.
  kFound = 16,      // `count` FoundItems, in the order of the keys
  kPieces = 17,     // `count` PieceItems, each followed by its bytes; a pull has one or more of these
  kListed = 18,     // `count` FoundItems, each followed by its key; `first`: the next cursor
  kDescribed = 19,  // `first`: blocks; `second`: bytes
};

struct RemoteHead {
  std::uint32_t protocol = kRemoteProtocol;
  RemoteKind kind{};
  std::uint64_t session = 0;  // a random number of the receiver, which it has told the sender alone
  std::uint64_t number = 0;   // of the request
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::uint64_t unused = 0;
};
static_assert(sizeof(RemoteHead) == kMessageHeadBytes);

struct FoundItem {
  std::uint64_t epoch = 0;
  std::uint64_t bytes = 0;
  std::uint64_t layout = 0;
  std::uint32_t slot = 0;
  std::uint32_t lease = 0;  // the word + 1; 0: none
  std::int32_t status = 0;
  std::uint32_t key_bytes = 0;  // in kListed
};
static_assert(sizeof(FoundItem) == 40);

struct PullItem {
  std::uint64_t epoch = 0;
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(PullItem) == 24);

/// A part of a block, which `bytes` bytes follow; or with a status that is not 0 the end of the block.
struct PieceItem {
  std::uint32_t index = 0;  // of the PullItem
  std::int32_t status = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(PieceItem) == 24);

struct ReleaseItem {
  std::uint32_t slot = 0;
  std::uint32_t lease = 0;
};

constexpr std::size_t kMostRemoteKeys = 64;
constexpr std::size_t kMostPullItems = 32;
constexpr std::size_t kMostListed = 128;
constexpr std::size_t kMostReleased = 1024;
static_assert(kMostRemoteKeys * (sizeof(std::uint32_t) + kMostKeyBytes) <= kLongestBody);
static_assert(kMostListed * (sizeof(FoundItem) + kMostKeyBytes) <= kLongestBody);
static_assert(kMostReleased * sizeof(ReleaseItem) <= kLongestBody);

/// Takes items from a body.
class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> body) : rest_(body) {}

  template <typename Item>
  requires std::is_trivially_copyable_v<Item> std::optional<Item> take() {
    if (rest_.size() < sizeof(Item)) {
      return std::nullopt;
    }
    Item item{};
    std::memcpy(&item, rest_.data(), sizeof item);
    rest_ = rest_.subspan(sizeof item);
    return item;
  }
  std::optional<std::span<const std::byte>> take_bytes(std::uint64_t bytes) {
    if (bytes > rest_.size()) {
      return std::nullopt;
    }
    const auto taken = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

/// A message to be sent. REQUIRES: the items fit into `room`.
class BodyWriter {
 public:
  explicit BodyWriter(std::size_t room) : room_(room) {
    // Not filled with zeros. NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
    message_.body.reset(new std::byte[room]);
  }

  template <typename Item>
  requires std::is_trivially_copyable_v<Item>
  void add(const Item& item) { std::memcpy(reserve(sizeof item), &item, sizeof item); }
  /// `bytes` may be null if `size` is 0.
  void add_bytes(const void* bytes, std::size_t size) {
    std::copy_n(static_cast<const std::byte*>(bytes), size, reserve(size));
  }
  /// For the caller to fill.
  std::byte* reserve(std::size_t size) {
    std::byte* const place = message_.body.get() + message_.bytes;
    message_.bytes += size;
    return place;
  }
  void unreserve(std::size_t size) { message_.bytes -= size; }
  [[nodiscard]] std::size_t left() const { return room_ - message_.bytes; }

  PortMessage take(const RemoteHead& head) {
    std::memcpy(message_.head.data(), &head, sizeof head);
    return std::move(message_);
  }

 private:
  std::size_t room_;
  PortMessage message_;
};

/// A head that makes sense by itself, or nothing.
inline std::optional<RemoteHead> read_remote_head(std::span<const std::byte> bytes) {
  RemoteHead head;
  if (bytes.size() != sizeof head) {
    return std::nullopt;
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  return head.protocol == kRemoteProtocol ? std::optional(head) : std::nullopt;
}

/// The next key of a kFind or kListed, if there is one.
inline std::optional<Key> take_key(BodyReader& body, std::uint64_t bytes) {
  const auto data = bytes <= kMostKeyBytes ? body.take_bytes(bytes) : std::nullopt;
  return data ? Key::make(data->data(), data->size()) : std::nullopt;
}

}  // namespace shmem::exchange
