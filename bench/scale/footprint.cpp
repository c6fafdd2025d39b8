// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/footprint.hpp"

#include <algorithm>

#include "shmem/bootstrap/uid_frame.hpp"
#include "shmem/net/greeting.hpp"
#include "shmem/team/metadata.hpp"

namespace scale {
namespace {

/// A head, then the start and the address with its length, and of each segment address, length and key with its length.
double greeting_on_the_way(double keys) {
  constexpr double kNumber = sizeof(std::uint64_t);
  return sizeof(shmem::GreetingHead) + 2 * kNumber + 3 * kNumber * shmem::kSegments + keys;
}

}  // namespace

Footprint footprint(const Parameters& parameters, double pes, double pes_per_node) {
  constexpr double kKilobyte = 1024;
  const double far = std::max(0.0, pes - pes_per_node);
  const double keys = parameters.network_address + shmem::kSegments * parameters.network_key;
  const double given = parameters.startup_given + (far > 0 ? greeting_on_the_way(keys) : 0);
  const double frames = parameters.startup_steps * sizeof(shmem::FrameHeader);
  Footprint bytes;
  bytes.own = (parameters.pe_private + parameters.pe_page_tables) * kKilobyte;
  bytes.network = far > 0 ? parameters.network_worker * kKilobyte : 0;
  bytes.team = sizeof(shmem::TeamSync) + sizeof(shmem::RoundWords) + sizeof(shmem::CarriedWords);
  bytes.addresses_each = far * (sizeof(shmem::Greeting) + keys);
  bytes.addresses = bytes.addresses_each / std::min(pes, pes_per_node);
  bytes.received = pes * given + frames;
  bytes.server = pes * bytes.received;
  return bytes;
}

double address_space_per_pe() {
  return static_cast<double>(shmem::kMetadataSize) + static_cast<double>(shmem::kBoardShare);
}

}  // namespace scale
