// SPDX-License-Identifier: Apache-2.0
// What the PEs of a job tell each other before there is a network: where they are, and the keys of their memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

struct SegmentGreeting {
  std::uint64_t address = 0;  // in the address space of its PE
  std::uint64_t bytes = 0;    // 0: there is none
  std::vector<std::byte> key = {};
};

struct Greeting {
  /// Of the library that carries the bytes: that of all must be the same, its messages are its own.
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::vector<std::byte> address = {};
  std::array<SegmentGreeting, kSegments> segments = {};
};

/// Everybody's greeting, in rank order. Collective. An Error, the same on all, if they do not fit together: other
/// versions, segments of other sizes, bytes that are no greeting or one of an earlier start of the job.
Result<std::vector<Greeting>> exchange_greetings(Bootstrap& world, const Greeting& mine,
                                                 const std::vector<std::string>& names);

// Its parts, for tests.

/// The same size on all; says how long the rest is.
struct GreetingHead {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t rest;   // bytes
  std::uint64_t start;  // by chance: that of PE 0 stands in everybody's rest
};
constexpr std::uint64_t kGreetingMagic = 0x3154454e4d485353;  // "SSHMNET1"
constexpr std::uint32_t kGreetingVersion = 2;

std::vector<std::byte> pack_greeting(const Greeting& greeting, std::uint64_t start);
/// `code` alone if those are not the bytes that pack_greeting() gave, all of them, in the start `start` of the job.
Result<Greeting> unpack_greeting(std::span<const std::byte> bytes, std::uint64_t start);
/// Of PE 0 and the first that differs.
Result<void> check_heads(const std::vector<GreetingHead>& heads, const std::vector<std::string>& names);
Result<void> check_segments(const std::vector<Greeting>& greetings, const std::vector<std::string>& names);

}  // namespace shmem
