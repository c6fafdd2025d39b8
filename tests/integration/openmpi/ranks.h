/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks of the tests have in common: the proof that nobody leaves a barrier before all have entered it. Every
 * rank says in memory that all share which barrier it has entered, and looks at all members' when it has left. The
 * memory is a file, since a barrier that is tested must not be what makes the others' stores visible.
 */
#ifndef GBA_TESTS_OPENMPI_RANKS_H
#define GBA_TESTS_OPENMPI_RANKS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

enum { RANKS = 192, SLOTS = 512 };

/* A communicator under test. `slot`: where its members count; the same for all of them, and nobody else's. */
typedef struct tested_t {
  MPI_Comm comm;
  int slot;
  int world_ranks[RANKS];
  int size;
  uint64_t entered;
} tested_t;

/* MPI_Init_thread, and the file at `path` mapped. */
void ranks_init(const char* path, int threads);
/* Gives the exit code: 0 if no rank has seen a failure, as rank 0 prints with the component's performance variables. */
int ranks_report(void);
/* ranks_report and MPI_Finalize. */
int ranks_finalize(void);

/* A slot that no other communicator has; every rank calls it equally often. */
int ranks_new_slot(void);
void ranks_watch(tested_t* tested, MPI_Comm comm, int slot);

/* Barriers, each of which is checked. */
void ranks_barrier(tested_t* tested);
uint64_t ranks_enter(tested_t* tested);
void ranks_check(const tested_t* tested, uint64_t entered);
/* Until all others have entered the barrier after this rank's last; makes no progress of MPI. */
void ranks_wait_for_others(const tested_t* tested);
void ranks_ibarriers(tested_t* tested, int count); /* `count` at the same time */

void ranks_expect(int holds, const char* what);

#endif
