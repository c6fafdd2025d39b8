// SPDX-License-Identifier: Apache-2.0
// One TCP connection of a link.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "kv/exchange/link_frames.hpp"
#include "wire/connection.hpp"

namespace shmem::exchange {

/// Nothing waits. Used by one thread.
class LinkConnection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State {
    kConnecting,  // to an owner
    kGreeting,    // the first frame of the other side is awaited
    kProving,     // the second
    kAdmitted,    // the other side, a reader, has proved itself, and is awaited where messages come and go
    kLinked
  };

  /// Begins to connect. Null: that has failed already.
  static std::unique_ptr<LinkConnection> connect(const Endpoint& place, Clock::time_point deadline);
  /// That of another member to this one.
  LinkConnection(base::UniqueFd socket, const Endpoint& where, bool is_outgoing, Clock::time_point limit)
      : outgoing(is_outgoing),
        place(where),
        deadline(limit),
        frames_(std::move(socket), sizeof(LinkAnswer) + kLongestPortAddress) {}

  [[nodiscard]] int fd() const { return frames_.fd(); }
  /// For poll().
  [[nodiscard]] short events() const;
  /// Once poll() says that it can be written to: false if it could not be connected.
  bool finish_connecting();

  /// From now on, the frames of one side are sealed.
  void seal(const Secret& secret, LinkSide sender) {
    const Seals seals = link_seals(secret, sender, hello, challenge);
    if ((sender == LinkSide::kReader) == outgoing) {
      frames_.seal(seals);
    } else {
      frames_.require(seals);
    }
  }
  /// False: the other side has gone, or has not taken earlier frames.
  bool send(const FrameBytes& frame) { return frames_.unsent() + frame->size() <= kMostUnsent && frames_.send(frame); }
  template <typename T>
  bool send(FrameType type, const T& head, std::span<const std::byte> rest = {}) {
    return send(encode(type, 0, std::as_bytes(std::span(&head, 1)), rest));
  }
  bool write() { return frames_.write(); }
  /// Takes bytes that have come. False: there will be no more.
  bool read() { return static_cast<bool>(frames_.read()); }
  Result<std::optional<Frame>> next() { return frames_.next(); }

  const bool outgoing;  // this member is the reader
  const Endpoint place;
  State state = State::kGreeting;
  Clock::time_point deadline;  // to be linked
  LinkHello hello;
  LinkChallenge challenge;
  std::uint64_t session = 0;          // this side's number in messages of the link
  std::uint64_t member = 0;           // at the other side, once that has proved itself
  std::optional<Endpoint> listens{};  // where the reader at the other side listens
  bool dropped = false;
  bool is_forgotten = false;           // all have been told of its end
  std::chrono::milliseconds pause{0};  // before this member connects there again
  bool declined = false;               // a member is there, and needs no link
  std::string failure{};               // why it could not be made, if that is known

 private:
  static constexpr std::size_t kMostUnsent = std::size_t{256} << 10;

  wire::Connection frames_;
};

}  // namespace shmem::exchange
