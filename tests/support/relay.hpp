// SPDX-License-Identifier: Apache-2.0
// A program between the two ends of TCP connections.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>

#include "base/fd.hpp"

namespace test_support {

/// Listens at a port of 127.0.0.1, and passes on what a client and the server at another port there say to each other,
/// but for one byte, which it changes in each connection. One connection at a time.
class Relay {
 public:
  struct Change {
    bool is_to_client;
    std::size_t offset;  // in all that is said in this direction
  };

  Relay(std::uint16_t server, std::optional<Change> change) : server_(server), change_(change) {
    sockaddr_in any = address_of(0);
    socklen_t size = sizeof any;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), size) != 0 || ::listen(listener_.get(), 16) != 0) {
      throw std::system_error(errno, std::generic_category(), "relay");
    }
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size);
    port_ = ntohs(any.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] bool has_changed() const { return has_changed_; }

 private:
  /// One direction of a connection.
  struct Direction {
    int from = -1;
    int to = -1;
    bool is_to_client = false;
    std::size_t passed = 0;
  };

  static base::UniqueFd new_socket() { return base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  static sockaddr_in address_of(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  /// False: not yet.
  static bool is_ready(int socket) {
    pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 1) > 0;
  }

  void run() {
    while (!stop_) {
      if (!is_ready(listener_.get())) {
        continue;
      }
      const base::UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      const base::UniqueFd server = new_socket();
      const sockaddr_in place = address_of(server_);
      if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) {
        pass(client.get(), server.get());
      }
    }
  }
  void pass(int client, int server) {
    std::array<Direction, 2> both{{{client, server, false}, {server, client, true}}};
    while (!stop_) {
      for (Direction& direction : both) {
        if (is_ready(direction.from) && !pass_some(direction)) {
          return;
        }
      }
    }
  }
  bool pass_some(Direction& direction) {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(direction.from, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      return false;
    }
    const auto count = static_cast<std::size_t>(got);
    if (change_ && change_->is_to_client == direction.is_to_client && change_->offset >= direction.passed &&
        change_->offset < direction.passed + count) {
      bytes[change_->offset - direction.passed] ^= 1;
      has_changed_ = true;
    }
    direction.passed += count;
    return ::send(direction.to, bytes.data(), count, MSG_NOSIGNAL) == got;
  }

  const std::uint16_t server_;
  const std::optional<Change> change_;
  const base::UniqueFd listener_ = new_socket();
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_changed_{false};
  std::thread thread_;
};

}  // namespace test_support
