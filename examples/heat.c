/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heat spreads over a plate whose edges are kept at 0: Jacobi steps of the equation in two dimensions. Each PE has a
 * block of rows, and a halo: one more row above and below, which are copies of its neighbours' outermost rows.
 *
 * The pattern: put with signal (OpenSHMEM 1.5). One call sends a row and signals its arrival; the receiver waits for
 * the signal, and there is no barrier in the loop.
 *
 * The plate begins as a product of sines. Such a wave only loses height, by the same known factor in each step, so the
 * result is checked against the exact one.
 */
#include <math.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "example.h"

#define CONDUCTION 0.2 /* of the step: stable below 0.25 */
#define WAVES_DOWN 3
#define WAVES_ACROSS 2

static const double kPi = 3.14159265358979323846;

static uint64_t rows_from_above = 0; /* how many rows the PE above has sent: signals */
static uint64_t rows_from_below = 0;

/* The block of rows of one PE: rows 1 to `rows` of each grid are its own, rows 0 and `rows` + 1 are the halo. */
typedef struct {
  int above; /* the PE that has the rows above, or -1 */
  int below;
  long rows;
  long rows_above; /* of the PE above, which may have one more or one less than this PE */
  long first_row;  /* of the plate, from 1 */
  long width;      /* of a row, with the two edges */
  double* grid[2]; /* symmetric: the current and the next state, in turn */
} Block;

static double wave(long row, long column, long rows, long columns) {
  return sin(kPi * WAVES_DOWN * (double)row / (double)(rows + 1)) *
         sin(kPi * WAVES_ACROSS * (double)column / (double)(columns + 1));
}

/* Sends the outermost rows of `grid` to the neighbours and waits for theirs. A neighbour may be one step ahead, and
 * writes into the other grid then: two grids are enough. */
static void exchange_halo(const Block* block, double* grid, uint64_t step) {
  const size_t width = (size_t)block->width;
  double* const first = grid + width;
  double* const last = grid + (size_t)block->rows * width;
  if (block->above >= 0) {
    double* const their_halo = grid + (size_t)(block->rows_above + 1) * width;
    shmem_double_put_signal(their_halo, first, width, &rows_from_below, step, SHMEM_SIGNAL_SET, block->above);
  }
  if (block->below >= 0) {
    shmem_double_put_signal(grid, last, width, &rows_from_above, step, SHMEM_SIGNAL_SET, block->below);
  }
  if (block->above >= 0) {
    shmem_signal_wait_until(&rows_from_above, SHMEM_CMP_GE, step);
  }
  if (block->below >= 0) {
    shmem_signal_wait_until(&rows_from_below, SHMEM_CMP_GE, step);
  }
}

static void spread(const Block* block, const double* now, double* next) {
  const long width = block->width;
  for (long row = 1; row <= block->rows; ++row) {
    for (long column = 1; column < width - 1; ++column) {
      const long at = row * width + column;
      next[at] = now[at] + CONDUCTION * (now[at - width] + now[at + width] + now[at - 1] + now[at + 1] - 4 * now[at]);
    }
  }
}

static Block make_block(long rows, long columns) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  Block block;
  const long begin = rows * me / pes;
  block.above = me - 1; /* -1 on PE 0 */
  block.below = me + 1 < pes ? me + 1 : -1;
  block.rows = rows * (me + 1) / pes - begin;
  block.rows_above = me > 0 ? begin - rows * (me - 1) / pes : 0;
  block.first_row = begin + 1;
  block.width = columns + 2;
  const size_t most_rows = (size_t)((rows + pes - 1) / pes) + 2; /* allocations must be of equal size on all PEs */
  for (int i = 0; i < 2; ++i) {
    block.grid[i] = must_have(shmem_calloc(most_rows * (size_t)block.width, sizeof(double)));
  }
  for (long row = 1; row <= block.rows; ++row) {
    for (long column = 1; column <= columns; ++column) {
      block.grid[0][row * block.width + column] = wave(block.first_row + row - 1, column, rows, columns);
    }
  }
  return block;
}

/* The largest difference from the exact result, which is `height` times the initial wave. */
static double largest_error(const Block* block, const double* grid, long rows, long columns, double height) {
  double largest = 0;
  for (long row = 1; row <= block->rows; ++row) {
    for (long column = 1; column <= columns; ++column) {
      const double exact = height * wave(block->first_row + row - 1, column, rows, columns);
      const double error = fabs(grid[row * block->width + column] - exact);
      if (!(error <= largest)) {
        largest = error; /* also if it is NaN */
      }
    }
  }
  return largest;
}

/* By how much one step lowers the wave. */
static double factor_of_a_step(long rows, long columns) {
  const double down = sin(kPi * WAVES_DOWN / (2.0 * (double)(rows + 1)));
  const double across = sin(kPi * WAVES_ACROSS / (2.0 * (double)(columns + 1)));
  return 1 - 4 * CONDUCTION * (down * down + across * across);
}

int main(int argc, char** argv) {
  shmem_init();
  const char* usage = "[ROWS [COLUMNS [STEPS]]]";
  const long rows = number_argument(argc, argv, 1, 128, shmem_n_pes(), 100000, usage); /* at least a row per PE */
  const long columns = number_argument(argc, argv, 2, 128, 1, 100000, usage);
  const long steps = number_argument(argc, argv, 3, 200, 1, 1000000, usage);
  Block block = make_block(rows, columns);
  shmem_barrier_all();

  for (long step = 0; step < steps; ++step) {
    double* const now = block.grid[step % 2];
    exchange_halo(&block, now, (uint64_t)step + 1);
    spread(&block, now, block.grid[(step + 1) % 2]);
  }

  static double error;
  static double worst;
  const double height = pow(factor_of_a_step(rows, columns), (double)steps);
  error = largest_error(&block, block.grid[steps % 2], rows, columns, height);
  shmem_double_max_reduce(SHMEM_TEAM_WORLD, &worst, &error, 1);
  if (shmem_my_pe() == 0) {
    printf("heat: %ld x %ld, %ld steps on %d PE%s; the wave is %.4f high, the largest error is %.1e\n", rows, columns,
           steps, shmem_n_pes(), shmem_n_pes() == 1 ? "" : "s", height, worst);
  }
  const int status = verdict("heat", !(error < 1e-11));
  for (int i = 0; i < 2; ++i) {
    shmem_free(block.grid[i]);
  }
  shmem_finalize();
  return status;
}
