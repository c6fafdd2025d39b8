/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct shared_t {
  _Atomic uint64_t entered[SLOTS][RANKS];
} shared_t;

static shared_t* shared;
static _Atomic int failures;
static int next_slot;

void ranks_expect(int holds, const char* what) {
  if (holds) {
    return;
  }
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (atomic_fetch_add(&failures, 1) < 5) {
    printf("rank %d: failed: %s\n", rank, what);
  }
}

/* A performance variable of the component counts from the creation of its handle. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[3];

static void start_counting(void) {
  static const char* const names[3] = {"coll_gba_offloaded", "coll_gba_fallen_back", "coll_gba_waiting_ns"};
  int provided = 0;
  int count = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  for (int i = 0; i < 3; ++i) {
    int index = 0;
    if (MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
      continue; /* disabled */
    }
    MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
  }
}

static unsigned long long counted(int index) {
  unsigned long long value = 0;
  if (handles[index] != MPI_T_PVAR_HANDLE_NULL) {
    MPI_T_pvar_read(session, handles[index], &value);
  }
  return value;
}

void ranks_init(const char* path, int threads) {
  int provided = 0;
  MPI_Init_thread(NULL, NULL, threads, &provided);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > RANKS) {
    fprintf(stderr, "this test has room for %d ranks, not %d\n", RANKS, ranks);
    abort();
  }
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *shared) != 0) {
    abort();
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) {
    abort();
  }
  close(file);
  start_counting();
  ranks_expect(provided == threads, "the level of threads");
}

int ranks_report(void) {
  int rank = 0;
  int all = 0;
  int mine = failures;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d failures, offloaded %llu, fallen back %llu, waited %llu\n", all, counted(0), counted(1), counted(2));
  }
  fflush(stdout);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return all == 0 ? 0 : 1;
}

int ranks_finalize(void) {
  const int code = ranks_report();
  MPI_Finalize();
  return code;
}

int ranks_new_slot(void) {
  return next_slot++ % SLOTS;
}

void ranks_watch(tested_t* tested, MPI_Comm comm, int slot) {
  MPI_Group group;
  MPI_Group world;
  int ranks[RANKS];
  *tested = (tested_t){.comm = comm, .slot = slot};
  if (comm == MPI_COMM_NULL) {
    return;
  }
  MPI_Comm_size(comm, &tested->size);
  for (int rank = 0; rank < tested->size; ++rank) {
    ranks[rank] = rank;
  }
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, tested->size, ranks, world, tested->world_ranks);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  /* Continues from the last count of an earlier communicator of this slot, since smaller counts prove nothing. The
   * members agree on it without a barrier. */
  uint64_t last = shared->entered[slot][self];
  MPI_Allreduce(&last, &tested->entered, 1, MPI_UINT64_T, MPI_MAX, comm);
}

uint64_t ranks_enter(tested_t* tested) {
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  tested->entered += 1;
  atomic_store_explicit(&shared->entered[tested->slot][self], tested->entered, memory_order_relaxed);
  return tested->entered;
}

void ranks_check(const tested_t* tested, uint64_t entered) {
  for (int rank = 0; rank < tested->size; ++rank) {
    const int world = tested->world_ranks[rank];
    ranks_expect(atomic_load_explicit(&shared->entered[tested->slot][world], memory_order_relaxed) >= entered,
                 "left a barrier before all members had entered it");
  }
}

void ranks_wait_for_others(const tested_t* tested) {
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  for (int rank = 0; rank < tested->size; ++rank) {
    const int world = tested->world_ranks[rank];
    while (world != self && atomic_load(&shared->entered[tested->slot][world]) <= tested->entered) {
      usleep(1000);
    }
  }
}

void ranks_barrier(tested_t* tested) {
  const uint64_t entered = ranks_enter(tested);
  ranks_expect(MPI_Barrier(tested->comm) == MPI_SUCCESS, "MPI_Barrier");
  ranks_check(tested, entered);
}

void ranks_ibarriers(tested_t* tested, int count) {
  MPI_Request requests[16];
  uint64_t entered[16];
  for (int i = 0; i < count; ++i) {
    entered[i] = ranks_enter(tested);
    ranks_expect(MPI_Ibarrier(tested->comm, &requests[i]) == MPI_SUCCESS, "MPI_Ibarrier");
  }
  /* Completes requests by MPI_Test and MPI_Wait in turn. */
  for (int i = 0; i < count; ++i) {
    int done = 0;
    while (i % 2 == 0 && !done) {
      MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
    }
    if (!done) {
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    ranks_check(tested, entered[i]);
  }
}
