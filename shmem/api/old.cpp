// SPDX-License-Identifier: Apache-2.0
// Names from before OpenSHMEM 1.2, and the hook for profiling libraries.
#include "shmem/api/setup.hpp"

SHMEM_OLD_ROUTINE(void, start_pes, (int /*npes*/)) {
  shmem::api::start();
}

SHMEM_OLD_ROUTINE(int, _my_pe, (void)) {
  return shmem::api::my_pe();
}

SHMEM_OLD_ROUTINE(int, _num_pes, (void)) {
  return shmem::api::n_pes();
}

SHMEM_ROUTINE(void, pcontrol, (int /*level*/, ...)) {}
