// SPDX-License-Identifier: Apache-2.0
// A member on another node, whose blocks this one reads: asks it, and takes its answers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kv/exchange/counters.hpp"
#include "kv/exchange/remote_messages.hpp"
#include "shmemx_exchange.h"

namespace shmem::exchange {

using Block = shmemx_exchange_block_t;

/// Requests for pulls that a member has at another one at a time.
constexpr std::uint32_t kMostPullRequests = 4;
/// A member that sends less is as lost as one that is silent. Slower than any network of a cluster, shared by many
/// readers.
constexpr std::uint64_t kLeastBytesPerSecond = std::uint64_t{64} << 10;

class RemotePeer;

/// A request that is under way. The peer writes to it until RemotePeer::finish has returned, which the destructor of a
/// derived class calls.
class RemoteCall {
 public:
  /// `bytes`: of the blocks in the answer.
  explicit RemoteCall(RemoteKind answer, std::uint64_t bytes = 0) : answer_(answer), bytes_(bytes) {}
  RemoteCall(const RemoteCall&) = delete;
  RemoteCall& operator=(const RemoteCall&) = delete;
  virtual ~RemoteCall() = default;

 protected:
  /// Takes a part of the answer. False: it makes no sense. May call set_over().
  virtual bool take(const RemoteHead& head, BodyReader& body) = 0;
  void set_over() { over_ = true; }

 private:
  friend class RemotePeer;
  const RemoteKind answer_;
  const std::uint64_t bytes_;
  std::uint64_t number_ = 0;
  std::chrono::steady_clock::time_point deadline_{};
  bool over_ = false;
};

/// Thread-safe. A member counts as lost if it is silent for the limit while it owes an answer, or if an answer is not
/// complete by the limit and the time that its blocks may take, and those of the calls before.
class RemotePeer {
 public:
  using Send = std::function<void(PortMessage message)>;
  using Clock = std::chrono::steady_clock;
  struct Identity {
    std::uint64_t member = 0;
    std::uint32_t seat = 0;
    std::uint32_t pid = 0;
    std::uint32_t slots = 0;
    std::uint64_t requests = 0;  // the owner's number for this member, in each request
    std::string place{};         // "192.0.2.1:4711"
    bool on_probation = false;   // it has been silent: no call asks it before it has answered a probe
  };

  /// `silent` is called, with a lock held, when the member has not answered in time.
  RemotePeer(Identity identity, std::chrono::milliseconds limit, Send send, std::function<void()> silent)
      : identity_(std::move(identity)),
        limit_(limit),
        send_(std::move(send)),
        silent_(std::move(silent)),
        proved_(!identity_.on_probation) {}

  [[nodiscard]] const Identity& identity() const { return identity_; }
  [[nodiscard]] bool is_alive() const { return ended_.load(std::memory_order_acquire) == 0; }
  /// Its calls fail with this error from now on. The first one stays.
  void end(std::errc why);
  /// Why it has ended, as a status; 0: it lives.
  [[nodiscard]] std::int32_t status() const { return -ended_.load(std::memory_order_acquire); }
  /// Whether calls may ask it.
  [[nodiscard]] bool is_proved() const { return proved_.load(std::memory_order_acquire); }
  /// Sends a request whose answer proves it; no call waits for that.
  void probe();
  /// A block that it said to have, and that could not be read.
  void note_refusal() { add(refusals_); }
  [[nodiscard]] std::uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }

  /// An answer. False: it makes no sense: end the peer.
  bool receive(const RemoteHead& head, std::span<const std::byte> body);

  /// Sends the request. `call` belongs to this until finish().
  void start(RemoteCall& call, RemoteHead head, BodyWriter& body);
  /// Waits until the call is over. False: the member was lost. Nothing is written to the call any more.
  bool finish(RemoteCall& call);
  /// A message without an answer.
  void tell(RemoteHead head, BodyWriter& body);

  /// The right to send one more pull, if there is one at the moment.
  bool try_turn();
  /// Waits for it. False: the member was lost. REQUIRES: the caller has no such right of this member, nor of a member
  /// on a lower seat.
  bool take_turn();
  void give_turn();

 private:
  template <typename Done>
  bool wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, Done done);
  void remove(const RemoteCall& call);
  void end_locked(std::errc why);

  const Identity identity_;
  const std::chrono::milliseconds limit_;
  const Send send_;
  const std::function<void()> silent_;
  std::atomic<bool> proved_;
  std::atomic<int> ended_{0};
  Counters::Count refusals_{0};
  std::mutex mutex_;  // for the rest
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, RemoteCall*> calls_;
  std::uint64_t last_number_ = 0;
  std::uint64_t bytes_ = 0;  // of the blocks that the calls wait for
  std::uint32_t turns_ = kMostPullRequests;
  Clock::time_point heard_{};
};

/// Finds up to kMostRemoteKeys keys.
class RemoteFind final : public RemoteCall {
 public:
  RemoteFind(RemotePeer& peer, std::span<const Key> keys, std::uint64_t layout, std::uint32_t lease_ms);
  ~RemoteFind() override { peer_.finish(*this); }
  /// The answers in the order of the keys, or nothing.
  std::span<const FoundItem> finish() { return peer_.finish(*this) ? std::span(items_) : std::span<FoundItem>(); }
  [[nodiscard]] RemotePeer& peer() const { return peer_; }

 private:
  bool take(const RemoteHead& head, BodyReader& body) override;
  RemotePeer& peer_;
  std::vector<FoundItem> items_;
};

/// Lists up to kMostListed blocks.
class RemoteList final : public RemoteCall {
 public:
  struct Listed {
    FoundItem item;
    Key key;
  };
  RemoteList(RemotePeer& peer, std::uint64_t cursor, std::size_t most);
  ~RemoteList() override { peer_.finish(*this); }
  bool finish() { return peer_.finish(*this); }
  [[nodiscard]] std::uint64_t cursor() const { return cursor_; }
  [[nodiscard]] const std::vector<Listed>& blocks() const { return blocks_; }

 private:
  bool take(const RemoteHead& head, BodyReader& body) override;
  RemotePeer& peer_;
  std::size_t most_;
  std::uint64_t cursor_;
  std::vector<Listed> blocks_;
};

/// Asks for the number of blocks.
class RemoteDescribe final : public RemoteCall {
 public:
  explicit RemoteDescribe(RemotePeer& peer);
  ~RemoteDescribe() override { peer_.finish(*this); }
  bool finish() { return peer_.finish(*this); }
  [[nodiscard]] RemotePeer& peer() const { return peer_; }
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  bool take(const RemoteHead& head, BodyReader& body) override;
  RemotePeer& peer_;
  std::uint64_t blocks_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Pulls blocks of one member, a few requests at a time.
class RemotePull {
 public:
  /// Starts; the memory belongs to this until finish() has returned.
  RemotePull(std::shared_ptr<RemotePeer> peer, std::span<const Block> blocks, void* const* destinations,
             std::int32_t* statuses);
  RemotePull(const RemotePull&) = delete;
  RemotePull& operator=(const RemotePull&) = delete;
  ~RemotePull();
  /// Sets a status for each block.
  void finish();

 private:
  class Request;
  void start_some(bool may_wait);
  void finish_oldest();

  std::shared_ptr<RemotePeer> peer_;
  std::span<const Block> left_;
  void* const* destinations_;
  std::int32_t* statuses_;
  std::vector<std::unique_ptr<Request>> requests_;  // under way, the oldest first
};

}  // namespace shmem::exchange
