/* SPDX-License-Identifier: Apache-2.0 */
/* A PE in C11: OpenSHMEM's own signatures, and shmem_sync with a team or an active set. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

#include "tests/support/pe.h"

PE_PART(c11) {
  shmem_init();
  long* psync = shmem_calloc(SHMEM_BARRIER_SYNC_SIZE, sizeof(long));
  shmem_sync(0, 0, shmem_n_pes(), psync);
  int wrong = shmem_sync(SHMEM_TEAM_WORLD);
  shmem_barrier(0, 0, shmem_n_pes(), psync);
  shmem_team_t team;
  wrong += shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
  wrong += shmem_team_sync(team);
  shmem_team_destroy(team);
  shmem_free(psync);
  shmem_finalize();
  printf("c11: %d\n", wrong);
  return wrong;
}
