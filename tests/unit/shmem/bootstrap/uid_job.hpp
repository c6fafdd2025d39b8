// SPDX-License-Identifier: Apache-2.0
// Jobs over TCP for tests: PEs are threads, and strangers are sockets.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shmem/bootstrap/tcp.hpp"
#include "tests/support/network.hpp"
#include "wire/endpoint.hpp"

namespace shmem::uid_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Joined = Result<std::unique_ptr<TcpBootstrap>>;

constexpr seconds kJoinLimit{60};

/// One job, whose server is PE 0.
class Tcp : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (test_support::wants_missing_ipv6(GetParam())) {
      GTEST_SKIP() << "this machine has no IPv6 loopback";
    }
    listen();
  }

  /// Begins another job.
  void listen() {
    auto listener = open_listener({.session = GetParam()});
    ASSERT_TRUE(listener) << listener.error().text;
    id_ = listener->id;
    listener_ = *std::move(listener);
  }

  TcpPlace place(int rank, int size, milliseconds limit = kJoinLimit) const {
    return {.rank = rank, .size = size, .limit = limit, .retries = false, .grace = kJoinLimit};
  }
  Joined join(int rank, int size, milliseconds limit = kJoinLimit) { return join_at(id_, place(rank, size, limit)); }
  Joined join_at(const UniqueId& id, const TcpPlace& place) {
    return TcpBootstrap::join(id, place, place.rank == 0 ? std::exchange(listener_, std::nullopt) : std::nullopt);
  }

  std::optional<UidListener> listener_;
  UniqueId id_;
};

/// Runs `body` for each PE on a thread of its own, and returns the results.
inline std::vector<std::string> in_threads(int pes, const std::function<std::string(int pe)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(pes));
  std::vector<std::thread> threads;
  threads.reserve(texts.size());
  for (int pe = 0; pe < pes; ++pe) {
    threads.emplace_back([&, pe] { texts[static_cast<std::size_t>(pe)] = body(pe); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return texts;
}

/// "" if allgather() gives the bytes of all PEs in rank order.
inline std::string gather(Bootstrap& bootstrap, std::size_t size) {
  const auto bytes_of = [&](int pe) {
    return std::vector<std::byte>(size, static_cast<std::byte>(static_cast<std::size_t>(pe) + size));
  };
  const auto all = bootstrap.allgather(bytes_of(bootstrap.rank()));
  if (!all) {
    return all.error().text;
  }
  std::vector<std::byte> expected;
  for (int pe = 0; pe < bootstrap.size(); ++pe) {
    const auto part = bytes_of(pe);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  return *all == expected ? "" : "wrong bytes of " + std::to_string(size);
}

/// With sockets that are no PEs.
class Trouble : public Tcp {
 protected:
  /// A connection to the server that has sent nothing yet.
  base::UniqueFd knock() const { return wire::connect_to(id_.place, Clock::now() + kJoinLimit).value(); }
  static void say(const base::UniqueFd& socket, std::span<const std::byte> bytes) {
    static_cast<void>(wire::send_all(socket.get(), bytes, Clock::now() + kJoinLimit));
  }
  static FrameBytes hello(int rank, int size) {
    const Hello hello = hello_of(rank, size);
    return encode(UidFrame::kHello, 0, std::as_bytes(std::span(&hello, 1)));
  }
  static Hello hello_of(int rank, int size) { return {{1, 2, 3}, rank, size, 1, 60'000, {}}; }
  /// The server's answer to the hello.
  static Challenge challenge_of(const base::UniqueFd& socket) {
    const auto challenge = await_challenge(socket);
    EXPECT_TRUE(challenge);
    return challenge.value_or(Challenge{});
  }
  /// Nothing if the server has closed the connection.
  static std::optional<Challenge> await_challenge(const base::UniqueFd& socket) {
    std::array<std::byte, sizeof(wire::FrameHeader) + sizeof(Challenge)> bytes{};
    if (::recv(socket.get(), bytes.data(), bytes.size(), MSG_WAITALL) != static_cast<ssize_t>(bytes.size())) {
      return std::nullopt;
    }
    Challenge challenge{};
    std::memcpy(&challenge, bytes.data() + sizeof(wire::FrameHeader), sizeof(challenge));
    return challenge;
  }
  /// Joins by hand. The server takes the connection for that PE of the job, whose later frames need `seals`.
  base::UniqueFd enter_by_hand(int rank, int size, std::optional<Seals>* seals = nullptr) const {
    base::UniqueFd socket = knock();
    say(socket, *hello(rank, size));
    const Challenge challenge = challenge_of(socket);
    const Proof proof = prove(id_.secret, Prover::kPe, hello_of(rank, size), challenge);
    if (seals != nullptr) {
      *seals = seals_of(id_.secret, Prover::kPe, hello_of(rank, size), challenge);
    }
    say(socket, *encode(UidFrame::kProof, 0, std::as_bytes(std::span(&proof, 1))));
    return socket;
  }
  /// All bytes until the other side closes.
  static std::string read_all(const base::UniqueFd& socket) {
    std::string text;
    std::array<char, 1000> buffer{};
    for (;;) {
      pollfd poll{socket.get(), POLLIN, 0};
      if (::poll(&poll, 1, 60'000) != 1) {
        return text + "<silent>";
      }
      const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        return text;
      }
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  /// Expects that a job of three works.
  void expect_a_good_job() {
    const auto texts = in_threads(3, [&](int pe) {
      auto bootstrap = join(pe, 3);
      if (!bootstrap) {
        return bootstrap.error().text;
      }
      std::string text = gather(**bootstrap, 3000);
      (*bootstrap)->leave();
      return text;
    });
    EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
  }
};

}  // namespace shmem::uid_test
