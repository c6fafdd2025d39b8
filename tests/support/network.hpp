// SPDX-License-Identifier: Apache-2.0
// The capabilities of this machine's network, as the kernel reports them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

namespace test_support {

inline bool has_ipv6_loopback() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return false;
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return bound;
}

/// True for "[ipv6]:port" on a machine without IPv6.
inline bool wants_missing_ipv6(std::string_view place) {
  return place.substr(0, 1) == "[" && !has_ipv6_loopback();
}

}  // namespace test_support
