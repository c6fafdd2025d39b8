// SPDX-License-Identifier: Apache-2.0
// A client of HTTP, for tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/fd.hpp"

namespace exchange_test {

/// A connection to a port of this host, which the test may misuse.
class Client {
 public:
  explicit Client(std::uint64_t port, const char* host = "127.0.0.1")
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, host, &where.sin_addr);
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }

  [[nodiscard]] bool connected() const { return connected_; }
  void send(const std::string& text) const {
    // It may have been cut off.
    static_cast<void>(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  /// All that comes before the server ends the connection.
  [[nodiscard]] std::string answer() const {
    std::string text;
    std::array<char, 4096> part{};
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    ssize_t got = 0;
    while (::poll(&readable, 1, 60'000) == 1 && (got = ::recv(socket_.get(), part.data(), part.size(), 0)) > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  /// The server ends the connection.
  [[nodiscard]] bool ends() const {
    char byte = 0;
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&readable, 1, 60'000) == 1) {
      if (::recv(socket_.get(), &byte, 1, 0) <= 0) {
        return true;
      }
    }
    return false;
  }

 private:
  base::UniqueFd socket_;
  bool connected_ = false;
};

inline std::string ask(std::uint64_t port, const std::string& request) {
  const Client client(port);
  client.send(request);
  return client.answer();
}

}  // namespace exchange_test
