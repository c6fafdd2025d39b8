// SPDX-License-Identifier: Apache-2.0
// How long barriers take for one member, in percentiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/tool/device.hpp"
#include "driver/tool/link.hpp"

namespace tool {

struct Measurement {
  std::vector<std::uint64_t> ns;  // of each round, sorted
  std::uint64_t slept = 0;        // rounds that took longer than a spin
};

/// Barrier `first` and those after it: some to warm up, then `rounds`. The member spins.
Result<Measurement> measure(gba_group* group, std::uint64_t first, std::uint64_t rounds);

/// {"min": ns, "p50": ns, ...}.
Json percentiles_of(const Measurement& measurement);
/// "min 1.02 us  p50 1.10 us  ...".
std::string to_text(const Json& percentiles);
/// Those that the other side has sent as "ns".
Result<Json> percentiles_in(const Json& message);

/// A condition that makes the figures worse than the device; empty if there is none.
std::string caveat(const gba_device_info& info);

}  // namespace tool
