/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram whose bins are spread over all PEs. Each PE draws numbers and counts each in the PE that has its bin.
 *
 * The pattern: remote atomics. Any number of PEs may count in one bin at once, and its owner does nothing for it.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>

#include "example.h"

/* A number from 0 to 1, from a generator with a seed per PE (splitmix64). */
static double uniform(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static uint64_t seed_of(int pe) {
  return 0x5eedU * ((uint64_t)pe + 1);
}

/* The mean of three such numbers is distributed roughly like a bell. */
static long draw_bin(uint64_t* state, long bins) {
  const double mean = (uniform(state) + uniform(state) + uniform(state)) / 3;
  return (long)(mean * (double)bins);
}

/* The number of wrong bins of PE `me`: draws all PEs' numbers again, alone. */
static long wrong_bins(const long* counts, long bins_per_pe, long bins, long samples) {
  long* expected = must_have(calloc((size_t)bins_per_pe, sizeof(long)));
  const int me = shmem_my_pe();
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    uint64_t state = seed_of(pe);
    for (long i = 0; i < samples; ++i) {
      const long bin = draw_bin(&state, bins);
      if (bin / bins_per_pe == me) {
        ++expected[bin % bins_per_pe];
      }
    }
  }
  long wrong = 0;
  for (long i = 0; i < bins_per_pe; ++i) {
    wrong += counts[i] != expected[i];
  }
  free(expected);
  return wrong;
}

static void print_bars(const long* counts, long bins_per_pe, long bins, long samples) {
  for (long bin = 0; bin < bins; ++bin) {
    const long count = shmem_long_g(&counts[bin % bins_per_pe], (int)(bin / bins_per_pe));
    printf("%4ld %8ld ", bin, count);
    for (long i = count * bins * 20 / (samples * shmem_n_pes()); i > 0; --i) {
      putchar('*');
    }
    putchar('\n');
  }
}

int main(int argc, char** argv) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const long bins = number_argument(argc, argv, 1, 16, 1, 10000000, "[BINS [SAMPLES_PER_PE]]");
  const long samples = number_argument(argc, argv, 2, 20000, 1, 1000000000, "[BINS [SAMPLES_PER_PE]]");
  const long bins_per_pe = (bins + pes - 1) / pes;
  long* counts = must_have(shmem_calloc((size_t)bins_per_pe, sizeof(long)));
  shmem_barrier_all(); /* some libraries make a PE's block zero when others have left shmem_calloc */

  uint64_t state = seed_of(me);
  for (long i = 0; i < samples; ++i) {
    const long bin = draw_bin(&state, bins);
    shmem_long_atomic_inc(&counts[bin % bins_per_pe], (int)(bin / bins_per_pe));
  }
  shmem_barrier_all(); /* all PEs have counted, and the counts have arrived */

  if (me == 0) {
    printf("histogram: %ld numbers in %ld bins on %d PE%s\n", samples * pes, bins, pes, pes == 1 ? "" : "s");
    if (bins <= 64) {
      print_bars(counts, bins_per_pe, bins, samples);
    }
  }
  const int status = verdict("histogram", wrong_bins(counts, bins_per_pe, bins, samples));
  shmem_free(counts);
  shmem_finalize();
  return status;
}
