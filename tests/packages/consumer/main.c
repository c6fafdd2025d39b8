/* SPDX-License-Identifier: Apache-2.0 */
#include <gba/gba.h>
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  printf("PE %d of %d, libgba %s\n", shmem_my_pe(), shmem_n_pes(), gba_version());
  shmem_finalize();
  return 0;
}
