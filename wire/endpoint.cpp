// SPDX-License-Identifier: Apache-2.0
#include "wire/endpoint.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/number.hpp"

namespace wire {

using base::fail;
using base::fail_errno;

namespace {

const sockaddr_in& ipv4(const Endpoint& endpoint) {
  return reinterpret_cast<const sockaddr_in&>(endpoint.storage);
}

const sockaddr_in6& ipv6(const Endpoint& endpoint) {
  return reinterpret_cast<const sockaddr_in6&>(endpoint.storage);
}

/// The address if `host` is a numeric one.
std::optional<Endpoint> numeric(const std::string& host) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    return Endpoint::of(reinterpret_cast<const sockaddr*>(&four));
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    return Endpoint::of(reinterpret_cast<const sockaddr*>(&six));
  }
  return std::nullopt;
}

Result<Endpoint> look_up(const std::string& host) {
  if (auto address = numeric(host)) {
    return *address;
  }
  if (host.find_first_not_of("0123456789.:") == std::string::npos) {
    return fail(std::errc::invalid_argument, fmt::format("\"{}\" is not an address", host));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return fail(std::errc::invalid_argument,
                fmt::format("the host \"{}\" cannot be found: {}", host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET || one->ai_family == AF_INET6) {
      return Endpoint::of(one->ai_addr);
    }
  }
  return fail(std::errc::invalid_argument, fmt::format("the host \"{}\" has no IPv4 or IPv6 address", host));
}

}  // namespace

Endpoint Endpoint::at_path(const std::string& path) {
  sockaddr_un unix_address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(unix_address.sun_path, sizeof unix_address.sun_path - 1);
  return of(reinterpret_cast<const sockaddr*>(&unix_address));
}

Endpoint Endpoint::of(const sockaddr* address) {
  Endpoint endpoint;
  endpoint.size = address->sa_family == AF_INET    ? sizeof(sockaddr_in)
                  : address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                   : sizeof(sockaddr_un);
  std::memcpy(&endpoint.storage, address, endpoint.size);
  return endpoint;
}

std::uint16_t Endpoint::port() const {
  if (family() == AF_UNIX) {
    return 0;
  }
  return ntohs(family() == AF_INET ? ipv4(*this).sin_port : ipv6(*this).sin6_port);
}

void Endpoint::set_port(std::uint16_t port) {
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
  } else if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  }
}

bool Endpoint::any_address() const {
  if (family() == AF_INET) {
    return ipv4(*this).sin_addr.s_addr == htonl(INADDR_ANY);
  }
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&ipv6(*this).sin6_addr) != 0;
}

bool Endpoint::link_local() const {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6(*this).sin6_addr) != 0;
}

std::string Endpoint::address_text() const {
  if (family() == AF_UNIX) {
    return reinterpret_cast<const sockaddr_un&>(storage).sun_path;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = family() == AF_INET ? static_cast<const void*>(&ipv4(*this).sin_addr) : &ipv6(*this).sin6_addr;
  return ::inet_ntop(family(), address, text.data(), text.size()) != nullptr ? text.data() : "?";
}

std::string Endpoint::text() const {
  if (family() == AF_UNIX) {
    const std::string path = address_text();
    return path.empty() ? "a process of this machine" : path;
  }
  const std::string port_text = fmt::format(":{}", port());
  return (family() == AF_INET ? address_text() : "[" + address_text() + "]") + port_text;
}

Result<Endpoint> parse_listening_endpoint(const std::string& text) {
  std::string rest = text;
  for (const std::string_view scheme : {"tcp://", "tcp6://"}) {
    if (rest.rfind(scheme, 0) == 0) {
      rest.erase(0, scheme.size());
    }
  }
  const auto colon = rest.rfind(':');
  if (colon == std::string::npos) {
    return fail(std::errc::invalid_argument, "a port is missing (ip:port)");
  }
  std::string host = rest.substr(0, colon);
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty()) {
    return fail(std::errc::invalid_argument, "an address is missing (ip:port)");
  }
  if (!brackets && host.find(':') != std::string::npos) {
    return fail(std::errc::invalid_argument, "an IPv6 address stands in brackets ([ipv6]:port)");
  }
  const auto port = base::number<std::uint16_t>(std::string_view(rest).substr(colon + 1));
  if (!port) {
    return fail(std::errc::invalid_argument, fmt::format("\"{}\" is not a port (0 to 65535)", rest.substr(colon + 1)));
  }
  auto endpoint = look_up(host);
  if (!endpoint) {
    return endpoint;
  }
  if (brackets && endpoint->family() != AF_INET6) {
    return fail(std::errc::invalid_argument, fmt::format("\"{}\" is not an IPv6 address", host));
  }
  endpoint->set_port(*port);
  return endpoint;
}

Result<Endpoint> parse_service_endpoint(const std::string& text) {
  const bool is_port = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return parse_listening_endpoint(is_port ? "127.0.0.1:" + text : text);
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  auto endpoint = parse_listening_endpoint(text);
  if (endpoint && endpoint->any_address()) {
    return fail(
        std::errc::invalid_argument,
        fmt::format("other hosts cannot connect to {}; name an address of this host", endpoint->address_text()));
  }
  return endpoint;
}

namespace {

using Clock = std::chrono::steady_clock;

void set(int socket, int level, int option, int value) {
  // Best effort: the bootstrap also works without these options.
  static_cast<void>(::setsockopt(socket, level, option, &value, sizeof(value)));
}

/// False if `socket` was not ready before the deadline.
bool await(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd poll{socket, events, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 60'000)));
    if (ready > 0) {
      return true;
    }
    if (ready == 0 && left.count() <= 60'000) {
      return false;
    }
  }
}

/// Milliseconds.
constexpr int kRetryTime = 5;

std::string cannot_listen(const Endpoint& where, const char* call) {
  return fmt::format("shmem: cannot listen at {}: {}", where.text(), call);
}

Result<void> await_connection(int socket, Clock::time_point deadline) {
  if (!await(socket, POLLOUT, deadline)) {
    return fail(std::errc::timed_out, "no answer");
  }
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    error = errno;
  }
  if (error != 0) {
    return fail_errno(error, "connect");
  }
  return {};
}

}  // namespace

void prepare_connection(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);  // refused by Unix sockets, which need none of them
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

Result<base::UniqueFd> listen_at(Endpoint& where) {
  base::UniqueFd socket(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return fail_errno(errno, cannot_listen(where, "socket"));
  }
  // With SO_REUSEADDR a port is available while connections of an earlier job are in TIME_WAIT. Linux still refuses it
  // while another socket listens there.
  if (where.port() != 0) {
    set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  }
  if (where.family() == AF_INET6) {
    set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  if (::bind(socket.get(), where.get(), where.size) != 0) {
    return fail_errno(errno, cannot_listen(where, "bind"));
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) {
    return fail_errno(errno, cannot_listen(where, "listen"));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail_errno(errno, cannot_listen(where, "getsockname"));
  }
  if (where.family() != AF_UNIX) {
    where = Endpoint::of(reinterpret_cast<const sockaddr*>(&bound));
  }
  return socket;
}

Result<base::UniqueFd> connect_to(const Endpoint& where, Clock::time_point deadline) {
  base::UniqueFd socket(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return fail_errno(errno, "socket");
  }
  prepare_connection(socket.get());
  int connected = ::connect(socket.get(), where.get(), where.size);
  // The queue of a Unix socket is full: it cannot be waited for.
  while (connected != 0 && errno == EAGAIN && where.family() == AF_UNIX && Clock::now() < deadline) {
    ::poll(nullptr, 0, kRetryTime);
    connected = ::connect(socket.get(), where.get(), where.size);
  }
  if (connected != 0) {
    if (errno != EINPROGRESS && errno != EINTR) {
      return fail_errno(errno, "connect");
    }
    if (auto ready = await_connection(socket.get(), deadline); !ready) {
      return ready.error();
    }
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return fail_errno(errno, "fcntl");
  }
  return socket;
}

Result<void> send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!await(socket, POLLOUT, deadline)) {
        return fail(std::errc::timed_out, "the receiver accepts no more bytes");
      }
    } else if (errno != EINTR) {
      return fail_errno(errno, "send");
    }
  }
  return {};
}

}  // namespace wire
