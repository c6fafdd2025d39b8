// SPDX-License-Identifier: Apache-2.0
// The raw speed of the machine: how long a cache line takes to another processor and back.
#pragma once

#include <atomic>
#include <cstdint>

namespace bench {

/// In memory that both sides see, zeroed at first. Each side writes one line and reads the other, as a barrier does.
struct PingPong {
  alignas(128) std::atomic<std::uint64_t> request;
  alignas(128) std::atomic<std::uint64_t> reply;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "works between processes");

/// Some 2 ms at 200 ns: shorter than the machine's moods, long enough to measure.
constexpr std::uint64_t kRoundTrips = 10'000;

/// `rounds` round trips while the other side is in `echo` with the same number. Gives nanoseconds for one. Both throw
/// std::runtime_error if the other side has not answered for ten seconds.
double ping(PingPong& lines, std::uint64_t rounds = kRoundTrips);
void echo(PingPong& lines, std::uint64_t rounds = kRoundTrips);

/// The raw round trip between the calling thread and a process of its own on `other_cpu`, which is gone afterwards.
/// The caller is pinned to another processor.
double raw_round_trip(int other_cpu);

}  // namespace bench
