// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/rendezvous.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tool {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

bool is_port(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoul(text) <= 65535;
}

std::string to_text(const Address& address) {
  const bool colons = address.host.find(':') != std::string::npos;
  return fmt::format("{}:{}", colons ? "[" + address.host + "]" : address.host, address.port);
}

Failure network_failure(int error, const std::string& text) {
  return {error, "gba: " + text, kPeerFailed};
}

Result<Addresses> resolve(const Address& address, int flags) {
  const addrinfo hints{.ai_flags = flags,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_STREAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  addrinfo* list = nullptr;
  const int error =
      ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), address.port.c_str(), &hints, &list);
  if (error != 0) {
    return network_failure(-EHOSTUNREACH,
                           fmt::format("cannot resolve {}: {}", to_text(address), ::gai_strerror(error)));
  }
  return Addresses(list);
}

std::string text_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return to_text({host.data(), port.data()});
}

/// A host that is gone is noticed within half a minute, also if neither side sends.
Link link_of(base::UniqueFd socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket.get(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  return Link(std::move(socket));
}

Result<base::UniqueFd> listen_on(const addrinfo& address, const std::string& shown) {
  base::UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (!socket || ::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 || ::listen(socket.get(), 1) != 0) {
    return network_failure(-errno, fmt::format("cannot listen on {}: {}", shown, std::strerror(errno)));
  }
  return socket;
}

Result<base::UniqueFd> try_to_connect(const addrinfo& address, Milliseconds limit) {
  base::UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = socket ? 0 : errno;
  if (error == 0 && ::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
  }
  if (error == EINPROGRESS) {
    pollfd event{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (::poll(&event, 1, static_cast<int>(limit.count())) == 1) {
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) {
    return network_failure(-error, std::strerror(error));
  }
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  return socket;
}

}  // namespace

Result<Address> parse_address(const std::string& text, const std::string& option) {
  Address address;
  std::string port;
  const auto colon = text.rfind(':');
  const auto bracket = text.find(']');
  if (is_port(text)) {
    port = text;
  } else if (text.starts_with('[') && bracket != std::string::npos) {
    address.host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
    if (!port.empty() && !port.starts_with(':')) {
      port = ":?";
    }
    port = port.empty() ? kDefaultPort : port.substr(1);
  } else if (colon == std::string::npos) {
    address.host = text;
    port = kDefaultPort;
  } else {
    address.host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (!is_port(port) || address.host.find('/') != std::string::npos) {
    return Failure{-EINVAL,
                   fmt::format("gba: {0} {1}: HOST, HOST:PORT or [IPV6]:PORT is wanted. A DEVICE stands before {0}, or "
                               "after {0}=ADDRESS",
                               option, text),
                   kUsage};
  }
  address.port = port;
  return address;
}

Result<Link> accept_one(const Address& address, Milliseconds limit) {
  // Without a host: "::", which takes IPv4 too; "0.0.0.0" on machines without IPv6.
  Address named = address;
  named.host = address.host.empty() ? "::" : address.host;
  auto list = resolve(named, AI_PASSIVE | AI_NUMERICSERV);
  auto listener = list ? listen_on(**list, to_text(address)) : Result<base::UniqueFd>(list.error());
  if (!listener && address.host.empty()) {
    list = resolve({"0.0.0.0", address.port}, AI_PASSIVE | AI_NUMERICSERV);
    listener = list ? listen_on(**list, to_text(address)) : Result<base::UniqueFd>(list.error());
  }
  if (!listener) {
    return listener.error();
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &size);
  std::fprintf(stderr, "gba: listening on %s\n", text_of(reinterpret_cast<sockaddr*>(&bound), size).c_str());
  pollfd event{.fd = listener->get(), .events = POLLIN, .revents = 0};
  if (::poll(&event, 1, static_cast<int>(limit.count())) <= 0) {
    return network_failure(-ETIMEDOUT, fmt::format("no gba has connected for {} s (--timeout)", limit.count() / 1000));
  }
  base::UniqueFd socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    return network_failure(-errno, fmt::format("cannot accept a connection: {}", std::strerror(errno)));
  }
  return link_of(std::move(socket));
}

Result<Link> connect_to(const Address& address, Milliseconds limit) {
  const auto list = resolve(address, AI_NUMERICSERV);
  if (!list) {
    return list.error();
  }
  Failure last;
  for (const addrinfo* one = list->get(); one != nullptr; one = one->ai_next) {
    auto socket = try_to_connect(*one, limit);
    if (socket) {
      return link_of(*std::move(socket));
    }
    last = socket.error();
  }
  const bool refused = last.error == -ECONNREFUSED;
  return network_failure(last.error, fmt::format("cannot connect to {}:{}{}", to_text(address), last.text.substr(4),
                                                 refused ? ": start the same command there first, with --listen" : ""));
}

}  // namespace tool
