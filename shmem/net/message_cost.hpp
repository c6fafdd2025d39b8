// SPDX-License-Identifier: Apache-2.0
// The cost of collective calls by messages, to choose between two algorithms: LogGP (Alexandrov, Ionescu, Schauser,
// Scheiman, 1995) with times in bytes that a link carries meanwhile. A message of b bytes takes kLatency + b, and a PE
// can begin the next one kOverhead + b after it began the last one. Both constants vary little between networks,
// because networks with a short latency have a high bandwidth: 2 us at 12 GB/s are 24 KB, 30 us at 1 GB/s are 30 KB.
// Integers, so that all members make the same choice on any processor.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace shmem::message_cost {

constexpr std::uint64_t kLatency = 32 << 10;
constexpr std::uint64_t kOverhead = 4 << 10;
/// A longer message is sent after a handshake (UCX's rendezvous, over tcp from 20 KiB on).
constexpr std::uint64_t kLongestEager = 16 << 10;
constexpr std::uint64_t kShortestSegment = 8 << 10;
constexpr std::uint64_t kLongestSegment = 1 << 20;

/// Rounds until one member has reached all, if each round doubles the members reached.
constexpr int rounds(int members) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(members - 1)));
}

/// A tree: each round doubles the members that have all of the data.
constexpr std::uint64_t tree_broadcast(int members, std::uint64_t bytes) {
  return static_cast<std::uint64_t>(rounds(members)) * (kLatency + bytes);
}

/// A chain: each member passes on one segment while it receives the next one. For large data it costs hardly more than
/// one message, while the tree sends all data again in each round.
constexpr std::uint64_t chain_broadcast(int members, std::uint64_t bytes, std::uint64_t segment) {
  const auto hops = static_cast<std::uint64_t>(members - 1);
  const std::uint64_t asking = segment > kLongestEager ? kLatency : 0;
  return hops * (kLatency + asking + segment) + (bytes / segment) * (kOverhead + asking + segment);
}

/// The best size of a chain's segments; 0: a tree is better.
constexpr std::size_t segment_of_broadcast(int members, std::uint64_t bytes) {
  std::uint64_t least = tree_broadcast(members, bytes);
  std::uint64_t best = 0;
  for (std::uint64_t segment = kShortestSegment; segment <= kLongestSegment && segment < bytes; segment *= 2) {
    if (const std::uint64_t cost = chain_broadcast(members, bytes, segment); cost < least) {
      least = cost;
      best = segment;
    }
  }
  return best;
}

/// In each round pairs of members combine all their data. Members beyond a power of two need a round before and one
/// after.
constexpr std::uint64_t doubling_reduction(int members, std::uint64_t bytes) {
  const bool whole = std::has_single_bit(static_cast<unsigned>(members));
  return static_cast<std::uint64_t>(whole ? rounds(members) : rounds(members) + 1) * (kLatency + bytes);
}

/// Each member combines one share of the data of all members and sends the result to the others. No byte is sent more
/// often than necessary, but every member sends to every other one.
constexpr std::uint64_t shared_reduction(int members, std::uint64_t bytes) {
  const auto others = static_cast<std::uint64_t>(members - 1);
  const std::uint64_t share = bytes / static_cast<std::uint64_t>(members);
  return kLatency + others * (kOverhead + share) + static_cast<std::uint64_t>(rounds(members)) * kLatency +
         others * share;
}

constexpr bool shares_reduction(int members, std::uint64_t bytes) {
  return shared_reduction(members, bytes) < doubling_reduction(members, bytes);
}

}  // namespace shmem::message_cost
