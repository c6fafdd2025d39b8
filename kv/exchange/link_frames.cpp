// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/link_frames.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace shmem::exchange {

WireEndpoint to_wire(const Endpoint& endpoint) {
  WireEndpoint wire;
  wire.port = endpoint.port();
  if (endpoint.family() == AF_INET) {
    wire.family = 4;
    std::memcpy(wire.address.data(), &reinterpret_cast<const sockaddr_in&>(endpoint.storage).sin_addr, 4);
  } else if (endpoint.family() == AF_INET6) {
    wire.family = 6;
    std::memcpy(wire.address.data(), &reinterpret_cast<const sockaddr_in6&>(endpoint.storage).sin6_addr, 16);
  }
  return wire;
}

std::optional<Endpoint> from_wire(const WireEndpoint& wire) {
  Endpoint endpoint;
  if (wire.family == 4) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, wire.address.data(), 4);
    endpoint = Endpoint::of(reinterpret_cast<const sockaddr*>(&four));
  } else if (wire.family == 6) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    std::memcpy(&six.sin6_addr, wire.address.data(), 16);
    endpoint = Endpoint::of(reinterpret_cast<const sockaddr*>(&six));
  } else {
    return std::nullopt;
  }
  if (wire.port == 0 || endpoint.any_address()) {
    return std::nullopt;
  }
  endpoint.set_port(wire.port);
  return endpoint;
}

Proof prove_owner(const Secret& secret, const LinkHello& hello, const LinkChallenge& challenge) {
  std::array<std::uint8_t, sizeof(LinkHello) + sizeof(LinkChallenge)> message{};
  LinkChallenge without = challenge;
  without.proof = {};
  std::memcpy(message.data(), &hello, sizeof hello);
  std::memcpy(message.data() + sizeof hello, &without, sizeof without);
  return wire::sign(secret, "libshmem: owner of a link of an exchange", message);
}

Seals link_seals(const Secret& secret, LinkSide side, const LinkHello& hello, const LinkChallenge& challenge) {
  return {secret,
          side == LinkSide::kOwner ? "libshmem: frames of the owner of a link of an exchange"
                                   : "libshmem: frames of the reader of a link of an exchange",
          prove_owner(secret, hello, challenge)};
}

std::vector<Endpoint> members_of(const Frame& frame) {
  std::vector<Endpoint> places;
  const std::size_t count = std::min(frame.payload.size() / sizeof(WireEndpoint), kMostLinkMembers);
  for (std::size_t i = 0; i < count; ++i) {
    WireEndpoint wire;
    std::memcpy(&wire, frame.payload.data() + i * sizeof wire, sizeof wire);
    if (const auto place = from_wire(wire)) {
      places.push_back(*place);
    }
  }
  return places;
}

}  // namespace shmem::exchange
