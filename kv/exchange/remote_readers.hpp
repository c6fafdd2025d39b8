// SPDX-License-Identifier: Apache-2.0
// Members on other nodes that read blocks of this one: their requests, and the leases that they have.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/fd.hpp"
#include "kv/exchange/directory_reader.hpp"
#include "kv/exchange/leases.hpp"
#include "kv/exchange/memory.hpp"
#include "kv/exchange/remote_messages.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// What a reader may have under way: pulls of blocks, messages that carry them, and other answers, of which each of its
/// threads waits for one.
constexpr std::size_t kMostRemotePulls = 256;
constexpr std::uint32_t kMostMessagesUnderWay = 8;
constexpr std::uint32_t kMostAnswersUnderWay = 1024;

/// Thread-safe. No call waits, each takes bounded time, and none trusts what a reader says.
class RemoteReaders {
 public:
  using Send = std::function<void(std::uint64_t route, PortMessage message)>;
  struct Limits {
    std::uint32_t quota = 0;     // of leases that a reader keeps
    std::uint32_t lease_ms = 0;  // the longest
  };

  /// `directory` is that of this member. `send` is called with a lock held.
  RemoteReaders(DirectoryReader directory, const Limits& limits, Send send)
      : directory_(std::move(directory)), limits_(limits), send_(std::move(send)) {}

  Result<void> add_region(std::uint32_t number, base::UniqueFd file, const FileRange& range);
  void remove_region(std::uint32_t number);

  /// A reader that is answered by `route`, with its number `answers` in the answers, and that is known by `session`.
  Result<void> add(std::uint64_t session, std::uint64_t route, std::uint64_t answers);
  /// Its leases end.
  void remove(std::uint64_t session);
  [[nodiscard]] bool is_leased(std::uint32_t slot, std::uint32_t now) const;
  [[nodiscard]] std::size_t count() const;
  /// The number of slots of the directory.
  [[nodiscard]] std::uint32_t slots() const { return directory_.slots(); }

  enum class Outcome { kDone, kForeign, kInvalid };
  /// Any message. kForeign: of none of the readers. kInvalid: of a reader that does not follow the protocol.
  Outcome receive(const RemoteHead& head, std::span<const std::byte> body);
  /// Sends parts of blocks, to each reader in turn. True: there may be more to do.
  bool turn();

 private:
  using Memory = std::shared_ptr<const PeerMemory>;
  /// A block that a reader pulls.
  struct Pull {
    std::uint64_t request;
    std::uint32_t index;
    PullItem item;
    std::optional<std::uint32_t> word = std::nullopt;  // of its lease, once it has begun
    Memory memory = nullptr;
    std::uint64_t at = 0;  // in the memory
    std::uint64_t done = 0;
  };
  using UnderWay = std::shared_ptr<std::atomic<std::uint32_t>>;
  struct Reader {
    std::uint64_t route;
    std::uint64_t answers;
    LeaseBoard board;
    Leases leases;
    std::deque<Pull> pulls{};  // the first has begun, or will be the next
    UnderWay pieces_under_way = std::make_shared<std::atomic<std::uint32_t>>(0);
    UnderWay answers_under_way = std::make_shared<std::atomic<std::uint32_t>>(0);
  };

  // REQUIRES: mutex_.
  bool find(Reader& reader, const RemoteHead& head, BodyReader& body);
  FoundItem find_one(Reader& reader, const Key& key, std::uint64_t layout, std::uint64_t lease_ms);
  std::int32_t lease(Reader& reader, FoundItem& item, std::uint64_t lease_ms);
  bool begin_pulls(Reader& reader, const RemoteHead& head, BodyReader& body);
  bool release(Reader& reader, const RemoteHead& head, BodyReader& body);
  bool list(Reader& reader, const RemoteHead& head, const BodyReader& body);
  bool describe(Reader& reader, const RemoteHead& head, const BodyReader& body);
  bool may_answer(const Reader& reader) const;
  void send(const Reader& reader, const UnderWay& under_way, PortMessage message) const;
  void send_pieces(Reader& reader);
  bool add_piece(Reader& reader, Pull& pull, BodyWriter& body);
  std::errc begin(Reader& reader, Pull& pull);
  std::errc copy_piece(Reader& reader, Pull& pull, BodyWriter& body);
  RemoteHead answer(const Reader& reader, RemoteKind kind, std::uint64_t number) const;

  const DirectoryReader directory_;
  const Limits limits_;
  const Send send_;
  mutable std::mutex mutex_;  // for the rest
  std::map<std::uint64_t, std::unique_ptr<Reader>> readers_;
  std::map<std::uint32_t, Memory> regions_;
};

}  // namespace shmem::exchange
