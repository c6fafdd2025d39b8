// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/footprint.hpp"

#include <algorithm>

#include "shmem/bootstrap/uid_frame.hpp"

namespace scale {

Footprint footprint(const Parameters& parameters, double pes, double pes_per_node) {
  constexpr double kKilobyte = 1024;
  constexpr double kRegions = 3;  // heap, global variables, board
  const double far = std::max(0.0, pes - pes_per_node);
  const double keys = parameters.network_address + kRegions * parameters.network_key;
  const double given = parameters.startup_given + (far > 0 ? parameters.network_told + keys : 0);
  const double frames = parameters.startup_steps * sizeof(shmem::FrameHeader);
  Footprint bytes;
  bytes.own = (parameters.pe_private + parameters.pe_page_tables) * kKilobyte;
  bytes.network = far > 0 ? parameters.network_worker * kKilobyte : 0;
  bytes.team = parameters.team_words;
  bytes.addresses_each = far * (parameters.network_kept + keys);
  bytes.addresses = bytes.addresses_each / std::min(pes, pes_per_node);
  bytes.received = pes * given + frames;
  bytes.server = pes * bytes.received;
  return bytes;
}

}  // namespace scale
