// SPDX-License-Identifier: Apache-2.0
// What collective calls by messages cost, to choose between two ways to make one: LogGP (Alexandrov, Ionescu, Schauser,
// Scheiman, 1995) with times counted in the bytes that a link carries meanwhile. A message of b bytes takes
// kLatency + b, and a PE can begin the next one kOverhead + b after it began the last one. The two do not differ much
// between networks, for those with a short latency carry more at a time: 2 us at 12 GB/s are 24 KB, 30 us at 1 GB/s
// 30 KB. Whole numbers, so that all members come to the same choice on whatever processor.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace shmem::message_cost {

constexpr std::uint64_t kLatency = 32 << 10;
constexpr std::uint64_t kOverhead = 4 << 10;
/// A longer message asks first whether it is expected (UCX's rendezvous, over tcp from 20 KiB on).
constexpr std::uint64_t kLongestEager = 16 << 10;
constexpr std::uint64_t kShortestSegment = 8 << 10;
constexpr std::uint64_t kLongestSegment = 1 << 20;

/// Rounds until one has reached all, if each round doubles them.
constexpr int rounds(int members) {
  return std::bit_width(static_cast<unsigned>(members - 1));
}

/// A tree: each round doubles those who have all of it.
constexpr std::uint64_t tree_broadcast(int members, std::uint64_t bytes) {
  return static_cast<std::uint64_t>(rounds(members)) * (kLatency + bytes);
}

/// A chain: each hands on one segment while the next one comes. Hardly dearer than one message if there is much to
/// send, while the tree sends everything again in each round.
constexpr std::uint64_t chain_broadcast(int members, std::uint64_t bytes, std::uint64_t segment) {
  const auto hops = static_cast<std::uint64_t>(members - 1);
  const std::uint64_t asking = segment > kLongestEager ? kLatency : 0;
  return hops * (kLatency + asking + segment) + (bytes / segment) * (kOverhead + asking + segment);
}

/// The bytes of a chain's segments; 0: a tree is better.
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

/// Each round, two members combine all that each has. Those above a power of two take a round before and one after.
constexpr std::uint64_t doubling_reduction(int members, std::uint64_t bytes) {
  const bool whole = std::has_single_bit(static_cast<unsigned>(members));
  return static_cast<std::uint64_t>(whole ? rounds(members) : rounds(members) + 1) * (kLatency + bytes);
}

/// Each member combines its share of everybody's and tells the others. No byte of a member is sent more often than
/// necessary, but everybody sends to everybody.
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
