/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposes a square matrix whose rows are dealt to the PEs in blocks.
 *
 * The pattern: alltoall (OpenSHMEM 1.5). Each PE cuts its rows into one tile per PE, one call exchanges all tiles, and
 * each PE transposes the tiles that it got.
 */
#include <shmem.h>
#include <stdio.h>

#include "example.h"

/* Tiles are square, `rows` by `rows`; `columns` is the length of the matrix' rows. */
static void cut_into_tiles(const double* matrix, double* tiles, long rows, long columns) {
  for (long row = 0; row < rows; ++row) {
    for (long column = 0; column < columns; ++column) {
      tiles[((column / rows) * rows + row) * rows + column % rows] = matrix[row * columns + column];
    }
  }
}

static void turn_tiles(const double* tiles, double* matrix, long rows, long columns) {
  for (long row = 0; row < rows; ++row) {
    for (long column = 0; column < columns; ++column) {
      matrix[row * columns + column] = tiles[((column / rows) * rows + column % rows) * rows + row];
    }
  }
}

/* Element (row, column) of the matrix is row * columns + column at first. */
static void fill(double* matrix, long rows, long columns, long first_row) {
  for (long row = 0; row < rows; ++row) {
    for (long column = 0; column < columns; ++column) {
      matrix[row * columns + column] = (double)((first_row + row) * columns + column);
    }
  }
}

static long count_wrong(const double* matrix, long rows, long columns, long first_row) {
  long wrong = 0;
  for (long row = 0; row < rows; ++row) {
    for (long column = 0; column < columns; ++column) {
      wrong += matrix[row * columns + column] != (double)(column * columns + first_row + row);
    }
  }
  return wrong;
}

int main(int argc, char** argv) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const long order = number_argument(argc, argv, 1, 512, 1, 100000, "[ORDER]");
  const long rows = (order + pes - 1) / pes; /* the same on each PE: the order is rounded up */
  const long columns = rows * pes;
  const size_t tile = (size_t)(rows * rows);

  const size_t room = tile * (size_t)pes;
  double* matrix = must_have(calloc(room, sizeof(double)));     /* only this PE uses it */
  double* out = must_have(shmem_malloc(room * sizeof(double))); /* tiles to send, for PE 0, 1, ... */
  double* in = must_have(shmem_malloc(room * sizeof(double)));  /* received tiles, from PE 0, 1, ... */

  fill(matrix, rows, columns, me * rows);
  cut_into_tiles(matrix, out, rows, columns);
  shmem_barrier_all(); /* the `in` of all PEs may be written */
  const int failed = shmem_double_alltoall(SHMEM_TEAM_WORLD, in, out, tile);
  turn_tiles(in, matrix, rows, columns);

  if (me == 0) {
    printf("transpose: %ld x %ld on %d PE%s, tiles of %zu bytes\n", columns, columns, pes, pes == 1 ? "" : "s",
           tile * sizeof(double));
  }
  const int status = verdict("transpose", failed != 0 ? 1 : count_wrong(matrix, rows, columns, me * rows));
  shmem_free(in);
  shmem_free(out);
  free(matrix);
  shmem_finalize();
  return status;
}
