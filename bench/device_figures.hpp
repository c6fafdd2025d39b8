// SPDX-License-Identifier: Apache-2.0
// Figures of the device. Each is measured with the calling thread on the first processor; they throw std::runtime_error
// and leave no process, socket or memory behind.
#pragma once

#include <vector>

#include "bench/measure.hpp"

namespace bench {

/// A group of one member: this process on one processor, the device on the other. The base is the raw round trip.
Series measure_device(const CpuPair& cpus);
/// A barrier group of `count` members, all in this process: its release, and the cost of an arrival. The base is the
/// raw round trip.
std::vector<Series> measure_members(const CpuPair& cpus, unsigned count);
/// Voluntary context switches per second of an idle device to which `clients` members of a group are connected.
double idle_switches_per_second(const CpuPair& cpus, unsigned clients);

}  // namespace bench
