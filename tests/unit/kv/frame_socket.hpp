// SPDX-License-Identifier: Apache-2.0
// One end of a link's TCP connection, in the hands of a test.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "base/fd.hpp"
#include "kv/exchange/link_frames.hpp"
#include "wire/endpoint.hpp"
#include "wire/frames.hpp"

namespace exchange_test {

class FrameSocket {
 public:
  explicit FrameSocket(base::UniqueFd socket) : socket_(std::move(socket)) {}
  /// A connection to `place`.
  explicit FrameSocket(const wire::Endpoint& place) : socket_(*wire::connect_to(place, deadline())) {}

  /// A connection that the other side has closed takes no more.
  void send(std::span<const std::byte> bytes) { static_cast<void>(wire::send_all(socket_.get(), bytes, deadline())); }
  template <typename T>
  void send(wire::FrameType type, const T& head, std::span<const std::byte> rest = {}) {
    send_frame(wire::encode(type, 0, std::as_bytes(std::span(&head, 1)), rest));
  }
  void send_frame(const wire::FrameBytes& frame) {
    send(*frame);
    if (seals_) {
      send(*wire::encode(seals_->next(*frame)));
    }
  }
  /// From now on the frames of both sides are sealed; this is `side`. One that gets the secret wrong is a stranger.
  void seal(shmem::exchange::LinkSide side, const wire::Secret& mine, const wire::Secret& others,
            const shmem::exchange::LinkHello& hello, const shmem::exchange::LinkChallenge& challenge) {
    using shmem::exchange::LinkSide;
    const LinkSide other = side == LinkSide::kOwner ? LinkSide::kReader : LinkSide::kOwner;
    seals_ = link_seals(mine, side, hello, challenge);
    reader_.require(link_seals(others, other, hello, challenge));
  }
  /// The next frame, or nothing once the other side has closed the connection.
  std::optional<wire::Frame> receive() {
    while (true) {
      auto frame = reader_.next();
      EXPECT_TRUE(frame);
      if (!frame || *frame) {
        return frame ? *std::move(frame) : std::nullopt;
      }
      std::array<std::byte, 4096> bytes{};
      const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got <= 0) {
        return std::nullopt;
      }
      reader_.push(std::span(bytes).first(static_cast<std::size_t>(got)));
    }
  }

  /// The seals of the frames that this side sends.
  std::optional<wire::Seals>& seals() { return seals_; }

 private:
  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + std::chrono::seconds{20};
  }

  base::UniqueFd socket_;
  wire::FrameReader reader_{std::size_t{1} << 20};
  std::optional<wire::Seals> seals_;
};

}  // namespace exchange_test
