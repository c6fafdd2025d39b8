// SPDX-License-Identifier: Apache-2.0
// Sockets whose close() takes as long as another process likes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/fd_message.hpp"

namespace test_support {

/// Sockets that cannot send what they have, and whose close() waits for that until this ends, or for a minute.
class LingeringSockets {
 public:
  LingeringSockets() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    place_.sin_family = AF_INET;
    place_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place_;
    EXPECT_EQ(::bind(listener_.get(), address(), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.get(), address(), &size), 0);
  }
  LingeringSockets(const LingeringSockets&) = delete;
  LingeringSockets& operator=(const LingeringSockets&) = delete;
  ~LingeringSockets() { end(); }
  /// They can all be closed from now on.
  void end() {
    for (const auto& sink : sinks_) {
      const linger now{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(sink.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);  // resets the connection
    }
    sinks_.clear();
  }

  base::UniqueFd make() {
    base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), address(), sizeof place_), 0);
    sinks_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> bytes(1 << 16);
    while (::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger long_time{.l_onoff = 1, .l_linger = 60};
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
    return socket;
  }
  /// Sends so many of them with the message, and has none of them afterwards. `to`: null, or an address.
  void send(int unix_socket, const void* data, std::size_t bytes, std::size_t count,
            std::pair<const sockaddr*, socklen_t> to = {}) {
    constexpr std::size_t kMost = 8;
    ASSERT_LE(count, kMost);
    std::vector<base::UniqueFd> sockets(count);
    std::vector<int> numbers;
    for (auto& socket : sockets) {
      socket = make();
      numbers.push_back(socket.get());
    }
    base::FdMessage<kMost> message(data, bytes);
    message.header.msg_name = const_cast<sockaddr*>(to.first);
    message.header.msg_namelen = to.second;
    // Its receiver may have ended the connection because of an earlier message.
    const bool sent = message.send(unix_socket, numbers, 0) == static_cast<ssize_t>(bytes);
    EXPECT_TRUE(sent || errno == EPIPE || errno == ECONNRESET) << errno;
    closers_.emplace_back([closing = std::move(sockets)] {});  // waits if the receiver has closed them already
  }

 private:
  [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&place_); }

  std::vector<std::jthread> closers_;
  base::UniqueFd listener_;
  sockaddr_in place_{};
  std::vector<base::UniqueFd> sinks_;
};

}  // namespace test_support
