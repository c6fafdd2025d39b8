/* SPDX-License-Identifier: Apache-2.0 */
/* Every PE prints its number; PE 0 counts the PEs. */
#include <shmem.h>
#include <stdio.h>

#include "example.h"

static int greetings = 0; /* symmetric: every PE has one, and PE 0's is used */

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();

  printf("Hello from PE %d of %d\n", me, pes);
  shmem_int_atomic_inc(&greetings, 0);
  shmem_barrier_all();

  if (me == 0) {
    int major = 0;
    int minor = 0;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    printf("%d PE%s of %s, OpenSHMEM %d.%d\n", greetings, greetings == 1 ? "" : "s", name, major, minor);
  }
  const int status = verdict("hello", me == 0 && greetings != pes);
  shmem_finalize();
  return status;
}
