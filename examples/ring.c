/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number goes round a ring of PEs, and each adds its own number plus one to it.
 *
 * The pattern: put the data, fence, then set a flag at the same PE. A PE that sees the flag sees the data.
 */
#include <shmem.h>
#include <stdio.h>
#include <time.h>

#include "example.h"

static long token = 0; /* the left neighbour puts the number here */
static long lap = 0;   /* the lap of that put, from 1 */

static void pass_on(long value, long in_lap, int to) {
  shmem_long_p(&token, value, to);
  shmem_fence(); /* the number arrives before the flag */
  shmem_long_atomic_set(&lap, in_lap, to);
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int right = (me + 1) % pes;
  const long laps = number_argument(argc, argv, 1, 100, 1, 1000000, "[LAPS]");
  shmem_barrier_all();

  const double start = seconds();
  if (me == 0) {
    pass_on(1, 1, right);
  }
  for (long i = 1; i <= laps; ++i) {
    shmem_long_wait_until(&lap, SHMEM_CMP_GE, i);
    /* Back at PE 0, the number begins the next lap; the last one ends there. */
    if (me != 0) {
      pass_on(token + me + 1, i, right);
    } else if (i < laps) {
      pass_on(token + 1, i + 1, right);
    }
  }

  long wrong = 0;
  if (me == 0) {
    const double hop = (seconds() - start) / (double)(laps * pes);
    const long expected = laps * pes * (pes + 1L) / 2;
    printf("ring: %ld laps through %d PE%s make %ld, expected %ld; %.2f us a hop\n", laps, pes, pes == 1 ? "" : "s",
           token, expected, hop * 1e6);
    wrong = token != expected;
  }
  const int status = verdict("ring", wrong);
  shmem_finalize();
  return status;
}
