// SPDX-License-Identifier: Apache-2.0
// Barriers of two members on two ports, measured on both sides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/tool/measurement.hpp"
#include "driver/tool/two_ports.hpp"

namespace tool {

constexpr std::uint64_t kMostRounds = 100'000'000;

struct OtherSide {
  std::string host;
  std::uint32_t port = 0;
  Json ns;  // percentiles
};

struct BothSides {
  Measurement mine;
  OtherSide other;
};

/// The other side in a process of this machine, on the device `path`. REQUIRES: this process has opened no device yet.
Result<std::unique_ptr<PeerProcess>> start_second_port(const std::string& path);

/// With the other side that `ports` names, or with `process`. The side that listens does as many rounds as the other
/// one says.
Result<BothSides> measure_two(gba_device* device, const gba_device_info& info, std::uint64_t rounds,
                              const TwoPorts& ports, PeerProcess* process);

}  // namespace tool
