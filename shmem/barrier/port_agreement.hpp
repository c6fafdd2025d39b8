// SPDX-License-Identifier: Apache-2.0
// Which PEs have a port of the switch: 0..m-1, where there are m.
#pragma once

#include "shmem/barrier/gba_port.hpp"
#include "shmem/job.hpp"

namespace shmem {

/// Opens `port`, if there is one to be had, and says so to the others, who learn of it with the next barrier of the
/// bootstrap. The Error says why there is none.
Result<void> try_port(const Job& job, GbaPort& port);

/// Collective, after that barrier: how many ports the PEs have, the same on all. Where some PEs have one and others
/// have not, PEs give theirs to those before them, which takes two more barriers.
Result<int> settle_ports(const Job& job, GbaPort& port);

}  // namespace shmem
