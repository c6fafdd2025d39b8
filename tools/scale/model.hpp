// SPDX-License-Identifier: Apache-2.0
// The time of a barrier, by a discrete-event simulation of its steps. Messages follow LogGP.
#pragma once

#include <cstdint>
#include <string>

#include "tools/scale/algorithms.hpp"

namespace scale {

/// Times in nanoseconds; parameters.txt explains each and the source of its value.
struct Parameters {
  double line_round_trip = 0;
  double line_share = 0;
  double line_read = 0;
  double release_store = 0;
  double pes_per_node = 0;
  double doorbell_store = 0;
  double switch_round_trip = 0;
  double switch_arrival_gap = 0;
  double switch_release_gap = 0;
  double ports_per_switch = 0;
  double network_latency = 0;
  double network_overhead = 0;
  double network_gap = 0;
  double network_byte = 0;
  double message_bytes = 0;
  double mpi_overhead = 0;
  double radix = 0;
};

/// Lines of a key, a value, a unit and a note. `name` is the file's, for messages. Throws std::runtime_error with line
/// and key if a key is unknown, missing or repeated, or if a value is invalid.
Parameters read_parameters(const std::string& name, const std::string& text);

/// All members arrive at the same time, except one, if `member` is not -1.
struct Late {
  int member = -1;
  double nanoseconds = 0;
};

/// Microseconds from the last arrival until the last member leaves. `mpi`: a message costs mpi_overhead as well. Throws
/// std::logic_error if a member leaves before all have arrived or is signalled twice, or if the barrier does not end.
double time_of(const Algorithm& algorithm, const Parameters& parameters, int pes_per_node, bool mpi = false,
               const Late& late = {});

/// The same for a method, with the switches and the radix of `parameters`.
double time_of(Method method, const Parameters& parameters, int members, int pes_per_node);

}  // namespace scale
