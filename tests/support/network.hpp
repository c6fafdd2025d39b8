// SPDX-License-Identifier: Apache-2.0
// The capabilities of this machine's network, as the kernel and UCX report them.
#pragma once

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
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

inline bool is_free_loopback_port(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return bound;
}

/// A port of the loopback that no socket uses now, or 0. The kernel does not give it to sockets that ask for any port,
/// so another process can hardly take it before the test does.
inline int free_loopback_port() {
  int given_from = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> given_from;
  given_from = std::max(given_from, 4096);
  std::random_device random;
  std::uniform_int_distribution<int> any(given_from / 2, given_from - 1);
  for (int tries = 0; tries < 100; ++tries) {
    if (const int port = any(random); is_free_loopback_port(port)) {
      return port;
    }
  }
  return 0;
}

/// True for "[ipv6]:port" on a machine without IPv6.
inline bool wants_missing_ipv6(std::string_view place) {
  return place.substr(0, 1) == "[" && !has_ipv6_loopback();
}

/// Whether UCX, with the settings that libshmem gives it, sends messages of any size over TCP before they are asked
/// for. 1.18 does, and keeps those that come early in memory of its own.
inline bool ucx_sends_at_once() {
  void* const library = ::dlopen("libucp.so.0", RTLD_NOW);
  using GetVersion = void(unsigned* major, unsigned* minor, unsigned* release);
  auto* const get_version =
      library == nullptr ? nullptr : reinterpret_cast<GetVersion*>(::dlsym(library, "ucp_get_version"));
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  if (get_version != nullptr) {
    get_version(&major, &minor, &release);
  }
  return minor >= 16;
}

}  // namespace test_support
