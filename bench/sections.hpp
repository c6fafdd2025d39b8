// SPDX-License-Identifier: Apache-2.0
// The parts of bench_all. Each measures with the calling thread on the first processor, throws std::runtime_error if it
// cannot, and leaves no process, socket or memory behind.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/cpus.hpp"
#include "bench/points.hpp"

namespace bench {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kShuffledBytes = 8 * kMebibyte;

/// The raw round trip; no base.
Series measure_raw(const CpuPair& cpus);
/// memcpy of 1 MiB; no base.
Series measure_memcpy(const CpuPair& cpus);
/// A barrier group of one member: this process on one processor, the device on the other. The base is the raw round
/// trip.
Series measure_device(const CpuPair& cpus);
/// A barrier group of `count` members, all of them this process: its release, and what an arrival costs. The base is
/// the raw round trip.
std::vector<Series> measure_members(const CpuPair& cpus, unsigned count);
/// Voluntary context switches of a device that nobody uses, with so many members of a group connected.
double idle_switches_per_second(const CpuPair& cpus, unsigned clients);
/// What bench_pes measures.
std::vector<Series> measure_pes(const CpuPair& cpus);

}  // namespace bench
