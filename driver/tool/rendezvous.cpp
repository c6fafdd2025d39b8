// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/rendezvous.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/number.hpp"
#include "wire/endpoint.hpp"

namespace tool {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

bool is_port(const std::string& text) {
  return text.size() <= 5 && base::number<std::uint16_t>(text).has_value();
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

/// The same for an Error that a function of wire/ returned.
Failure network_failure(const base::Error& error) {
  return network_failure(-static_cast<int>(error.code), std::generic_category().message(static_cast<int>(error.code)));
}

Result<base::UniqueFd> listen_on(wire::Endpoint& place, const std::string& shown) {
  auto socket = wire::listen_at(place);
  if (!socket) {
    const Failure failure = network_failure(socket.error());
    return network_failure(failure.error, fmt::format("cannot listen on {}: {}", shown, failure.text.substr(5)));
  }
  return *std::move(socket);
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
  wire::Endpoint place;
  const auto listen = [&](const Address& where) -> Result<base::UniqueFd> {
    const auto list = resolve(where, AI_PASSIVE | AI_NUMERICSERV);
    if (!list) {
      return list.error();
    }
    place = wire::Endpoint::of((*list)->ai_addr);
    return listen_on(place, to_text(address));
  };
  auto listener = listen(named);
  if (!listener && address.host.empty()) {
    listener = listen({"0.0.0.0", address.port});
  }
  if (!listener) {
    return listener.error();
  }
  std::fprintf(stderr, "gba: listening on %s\n", place.text().c_str());
  pollfd event{.fd = listener->get(), .events = POLLIN, .revents = 0};
  if (::poll(&event, 1, static_cast<int>(limit.count())) <= 0) {
    return network_failure(-ETIMEDOUT, fmt::format("no gba has connected for {} s (--timeout)", limit.count() / 1000));
  }
  // Not by a wire::Listener, whose connections do not block: this is one, whose link waits.
  base::UniqueFd socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    return network_failure(-errno, fmt::format("cannot accept a connection: {}", std::strerror(errno)));
  }
  wire::prepare_connection(socket.get());
  return Link(std::move(socket));
}

Result<Link> connect_to(const Address& address, Milliseconds limit) {
  const auto list = resolve(address, AI_NUMERICSERV);
  if (!list) {
    return list.error();
  }
  Failure last;
  for (const addrinfo* one = list->get(); one != nullptr; one = one->ai_next) {
    auto socket = wire::connect_to(wire::Endpoint::of(one->ai_addr), std::chrono::steady_clock::now() + limit);
    if (socket) {
      return Link(*std::move(socket));
    }
    last = network_failure(socket.error());
  }
  const bool refused = last.error == -ECONNREFUSED;
  return network_failure(last.error, fmt::format("cannot connect to {}:{}{}", to_text(address), last.text.substr(4),
                                                 refused ? ": start the same command there first, with --listen" : ""));
}

}  // namespace tool
