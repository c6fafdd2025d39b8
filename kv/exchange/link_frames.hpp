// SPDX-License-Identifier: Apache-2.0
// How members on different nodes get to know each other, over TCP, in frames (wire/frames.hpp). Both
// sides prove that they know the secret, the one that was connected to first; neither sends it. Then they tell each
// other how messages reach them. The connection stays: its end is the end of the link. All frames after the challenge
// are sealed, so that a program between two members, which one of them has taken for the other, can only pass them on.
//
//   reader -> owner  kHello      LinkHello
//   owner -> reader  kChallenge  LinkChallenge, with the owner's proof
//   reader -> owner  kAnswer     LinkAnswer, the address of its message port; or kDecline: it does not need this link
//   owner -> reader  kWelcome    LinkWelcome, the address of its message port
//   owner -> reader  kMembers    WireEndpoints: where other members listen
//   owner -> reader  kRefused    a text, instead of any of these
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "shmem/result.hpp"
#include "wire/endpoint.hpp"
#include "wire/frames.hpp"
#include "wire/proof.hpp"

namespace shmem::exchange {

using wire::encode;
using wire::Endpoint;
using wire::Frame;
using wire::FrameBytes;
using wire::FrameType;
using wire::Nonce;
using wire::Proof;
using wire::Seals;
using wire::Secret;

constexpr FrameType kLinkHello{64};
constexpr FrameType kLinkChallenge{65};
constexpr FrameType kLinkAnswer{66};
constexpr FrameType kLinkDecline{67};
constexpr FrameType kLinkWelcome{68};
constexpr FrameType kLinkMembers{69};
constexpr FrameType kLinkRefused{70};

/// It changes with these frames.
constexpr std::uint32_t kLinkProtocol = 2;

/// The identity of a member.
struct LinkIdentity {
  std::uint64_t member = 0;
  std::uint64_t node = 0;      // members with an equal one see each other without a link
  std::uint64_t version = 0;   // of the library below (MessagePort)
  std::uint32_t messages = 0;  // kRemoteProtocol
  std::uint32_t pid = 0;
};
static_assert(sizeof(LinkIdentity) == 32);

struct LinkHello {
  Nonce nonce{};
  LinkIdentity who;
  std::uint32_t protocol = kLinkProtocol;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(LinkHello) == 72);

struct LinkChallenge {
  Nonce nonce{};
  LinkIdentity who;
  Proof proof{};
};
static_assert(sizeof(LinkChallenge) == 96);

/// An address of IPv4 (in the first 4 bytes) or IPv6, and a port.
struct WireEndpoint {
  std::uint16_t family = 0;  // 4 or 6
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> address{};
};
static_assert(sizeof(WireEndpoint) == 20);
WireEndpoint to_wire(const Endpoint& endpoint);
/// Nothing if it is not an address that a member can listen at.
std::optional<Endpoint> from_wire(const WireEndpoint& wire);

/// Its seal is the reader's proof.
struct LinkAnswer {
  std::uint64_t answers = 0;  // the number that answers to this reader have
  WireEndpoint place{};       // where the reader listens
  std::uint32_t reserved = 0;
};
static_assert(sizeof(LinkAnswer) == 32);

struct LinkWelcome {
  std::uint64_t requests = 0;  // the number that requests of the reader have
  std::uint32_t slots = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(LinkWelcome) == 16);

constexpr std::size_t kLongestPortAddress = std::size_t{64} << 10;
constexpr std::size_t kMostLinkMembers = 512;

enum class LinkSide : std::uint8_t { kOwner = 1, kReader = 2 };
/// The owner's proof for these two frames, of all but the proof in the second.
Proof prove_owner(const Secret& secret, const LinkHello& hello, const LinkChallenge& challenge);
/// Those of a side's frames after these two.
Seals link_seals(const Secret& secret, LinkSide side, const LinkHello& hello, const LinkChallenge& challenge);

/// The bytes of a frame after its T, of which there is at least one and not more than kLongestPortAddress.
template <typename T>
std::optional<std::vector<std::byte>> port_address_of(const Frame& frame) {
  if (frame.payload.size() <= sizeof(T) || frame.payload.size() > sizeof(T) + kLongestPortAddress) {
    return std::nullopt;
  }
  return std::vector<std::byte>(frame.payload.begin() + sizeof(T), frame.payload.end());
}

/// The places in a kLinkMembers frame; those that make no sense are skipped.
std::vector<Endpoint> members_of(const Frame& frame);

}  // namespace shmem::exchange
