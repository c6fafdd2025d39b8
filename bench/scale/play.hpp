// SPDX-License-Identifier: Apache-2.0
// Plays barriers: who arrives when, who waits for whom, and when it is over.
#pragma once

#include "bench/scale/parameters.hpp"
#include "bench/scale/program.hpp"

namespace scale {

/// How long members work between two barriers, beyond the quickest.
struct Work {
  Distribution distribution = Distribution::kNone;
  double mean = 0;  // nanoseconds
  std::uint64_t seed = 1;

  /// The same for the same seed, member and barrier, on every machine.
  [[nodiscard]] Time before(int barrier, int member) const;
};

/// Mean values over the barriers played.
struct Outcome {
  double after_last = 0;     // microseconds from the last arrival until the last member goes on
  double after_first = 0;    // and from the first arrival
  double wait = 0;           // that a member spends in a barrier, waiting for others included
  double period = 0;         // of barriers one after the other
  std::int64_t signals = 0;  // stores and messages to others, of one barrier
};

/// Each member has a processor, `pes_per_node` of them one network interface; messages follow LogGP. A discrete-event
/// simulation of `barriers` of them, one after the other. Throws std::logic_error if somebody leaves a barrier before
/// all have come, or nobody can go on.
Outcome play(const Program& program, const Parameters& parameters, const Layout& layout, const Work& work, int barriers,
             bool mpi = false);

/// All members on one node with so many processors, which they share: each in turn does what it can, and gives way,
/// which takes `context_switch` nanoseconds. Microseconds of one barrier of those played back to back.
double play_crowded(const Program& program, const Parameters& parameters, int processors, double context_switch,
                    int barriers);

}  // namespace scale
