/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the ranks of the tests: the check that no rank leaves a barrier before all have entered it. Every rank
 * records in shared memory which barrier it has entered, and reads the records of all members after the barrier. The
 * shared memory is a mapped file, which makes the stores visible independently of the barrier under test.
 */
#ifndef GBA_TESTS_OPENMPI_RANKS_H
#define GBA_TESTS_OPENMPI_RANKS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

enum { RANKS = 708, SLOTS = 512 };

/* A communicator under test. `slot`: where its members count, the same for all members and used by no others. */
typedef struct tested_t {
  MPI_Comm comm;
  int slot;
  int world_ranks[RANKS];
  int size;
  uint64_t entered;
} tested_t;

/* MPI_Init_thread, and the file at `path` mapped. */
void ranks_init(const char* path, int threads);
/* Returns the exit code, 0 if no rank has seen a failure. Rank 0 prints it with the component's performance
 * variables. */
int ranks_report(void);
/* ranks_report and MPI_Finalize. */
int ranks_finalize(void);

/* A slot that no other communicator has. Every rank must call it equally often. */
int ranks_new_slot(void);
void ranks_watch(tested_t* tested, MPI_Comm comm, int slot);

/* A barrier, which is checked. */
void ranks_barrier(tested_t* tested);
uint64_t ranks_enter(tested_t* tested);
void ranks_check(const tested_t* tested, uint64_t entered);
/* Waits until all others have entered the barrier after this rank's last one, without progress in MPI. */
void ranks_wait_for_others(const tested_t* tested);
void ranks_ibarriers(tested_t* tested, int count); /* `count` at the same time */

void ranks_expect(int holds, const char* what);

#endif
