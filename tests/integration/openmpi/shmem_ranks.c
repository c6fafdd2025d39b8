/* SPDX-License-Identifier: Apache-2.0 */
/* shmem_ranks FILE CASE N [AT PID]: PEs of Open MPI's OpenSHMEM, which are MPI ranks too. */
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

static tested_t world;
static int pe, pes;
static long sync_words[16][SHMEM_BARRIER_SYNC_SIZE];
static long received[RANKS]; /* symmetric */

static void barrier_all(void) {
  const uint64_t entered = ranks_enter(&world);
  shmem_barrier_all();
  ranks_check(&world, entered);
}

/* world N: barriers, after which puts are complete, and syncs, which do not complete puts, in turn. */
static void world_case(int count, char** numbers) {
  (void)numbers;
  for (int i = 1; i <= count; ++i) {
    shmem_long_p(&received[pe], i, (pe + 1) % pes);
    barrier_all();
    ranks_expect(received[(pe + pes - 1) % pes] == i, "a put is complete after shmem_barrier_all");
    const uint64_t entered = ranks_enter(&world);
    shmem_sync_all();
    ranks_check(&world, entered);
  }
}

/* sets N: active sets that overlap: the even PEs, all but the first, the last two. */
static void sets_case(int count, char** numbers) {
  const struct { int start, stride, size; } sets[3] = {{0, 1, (pes + 1) / 2}, {1, 0, pes - 1}, {pes - 2, 0, 2}};
  tested_t tested[3];
  int member[3];
  (void)numbers;
  for (int set = 0; set < 3; ++set) {
    const int step = 1 << sets[set].stride;
    const int place = pe - sets[set].start;
    MPI_Comm comm;
    member[set] = place >= 0 && place % step == 0 && place / step < sets[set].size;
    MPI_Comm_split(MPI_COMM_WORLD, member[set] ? 0 : MPI_UNDEFINED, pe, &comm);
    ranks_watch(&tested[set], comm, ranks_new_slot());
  }
  for (int i = 0; i < 2 * count; ++i) {
    for (int set = 0; set < 3; ++set) {
      if (!member[set]) {
        continue;
      }
      const uint64_t entered = ranks_enter(&tested[set]);
      long* const words = sync_words[2 * set + i % 2];
      if (i % 3 == 0) {
        shmem_sync(sets[set].start, sets[set].stride, sets[set].size, words);
      } else {
        shmem_barrier(sets[set].start, sets[set].stride, sets[set].size, words);
      }
      ranks_check(&tested[set], entered);
    }
    if (i % 4 == 3) {
      barrier_all();
    }
  }
}

/* mixed N: barriers of MPI and of OpenSHMEM in turn, while some of MPI's are pending. */
static void mixed_case(int count, char** numbers) {
  tested_t other;
  MPI_Request request;
  (void)numbers;
  ranks_watch(&other, MPI_COMM_WORLD, ranks_new_slot());
  for (int i = 0; i < count; ++i) {
    ranks_barrier(&world);
    barrier_all();
    const uint64_t entered = ranks_enter(&other);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    barrier_all();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ranks_check(&other, entered);
  }
}

/* killed N AT PID: PE 0 kills the device before its barrier AT. */
static void killed_case(int count, char** numbers) {
  for (int i = 0; i < count; ++i) {
    if (i == atoi(numbers[0]) && pe == 0) {
      kill(atoi(numbers[1]), SIGKILL);
    }
    barrier_all();
    if (i % 2 == 1) {
      shmem_barrier(0, 0, pes, sync_words[i / 2 % 2]);
    }
  }
}

/* An active set, whose barriers one thread of each PE calls. */
typedef struct set_t {
  int start, size;
  int slot_of_words;
  int count;
  useconds_t delay;
  tested_t tested;
} set_t;

static long broadcast_words[4][SHMEM_BCAST_SYNC_SIZE];
static long broadcast_source, broadcast_target;

/* Makes the group of an active set without a barrier. */
static void make_group(int start, int size, int slot) {
  shmem_broadcast64(&broadcast_target, &broadcast_source, 1, 0, start, 0, size, broadcast_words[slot]);
}

static void* thread_of_set(void* context) {
  set_t* const set = context;
  usleep(set->delay);
  for (int i = 0; i < set->count; ++i) {
    const uint64_t entered = ranks_enter(&set->tested);
    shmem_barrier(set->start, 0, set->size, sync_words[2 * set->slot_of_words + i % 2]);
    ranks_check(&set->tested, entered);
  }
  return NULL;
}

/* threads N: each set's barriers in a thread of its own, started in the opposite order on every other PE. */
static void threads_case(int count, char** numbers) {
  set_t sets[3] = {{.start = 0, .size = pes - 1}, {.start = 0, .size = pes - 2}, {.start = 1, .size = pes - 1}};
  pthread_t threads[3];
  (void)numbers;
  for (int i = 0; i < 3; ++i) {
    const int member = pe >= sets[i].start && pe < sets[i].start + sets[i].size;
    MPI_Comm comm;
    sets[i].slot_of_words = i;
    sets[i].count = member ? count : 0;
    sets[i].delay = (useconds_t)(pe % 2 == 0 ? i : 2 - i) * 30000;
    MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, pe, &comm);
    ranks_watch(&sets[i].tested, comm, ranks_new_slot());
    if (member) {
      make_group(sets[i].start, sets[i].size, i);
    }
  }
  barrier_all();
  for (int i = 0; i < 3; ++i) {
    pthread_create(&threads[i], NULL, thread_of_set, &sets[i]);
  }
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
  }
  barrier_all();
}

/* Never returns: signals that only interrupt pause() come at the end of a job. */
static void stay_away(void) {
  for (;;) {
    pause();
  }
}

/* late N: PE 1 does not enter a barrier of all PEs. */
static void late_case(int count, char** numbers) {
  (void)numbers;
  for (int i = 0; i < count; ++i) {
    barrier_all();
  }
  if (pe == 1) {
    stay_away();
  }
  barrier_all();
}

/* absent N: PE 2 does not enter the first barrier of an active set, in which the members agree on the device. The
 * others enter after PE 1, the first member, whose timeout must pass first. */
static void absent_case(int count, char** numbers) {
  tested_t callers;
  MPI_Comm comm;
  (void)count;
  (void)numbers;
  MPI_Comm_split(MPI_COMM_WORLD, pe == 1 || pe == 3, pe, &comm);
  ranks_watch(&callers, comm, ranks_new_slot());
  if (pe > 0) {
    make_group(1, pes - 1, 0);
  }
  if (pe == 0 || pe == 2) {
    stay_away();
  }
  if (pe == 1) {
    ranks_enter(&callers);
  } else {
    ranks_wait_for_others(&callers);
  }
  shmem_barrier(1, 0, pes - 1, sync_words[0]);
}

/* The variables count from the creation of their handles, which is after the barriers of shmem_init. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle by_device, by_others;

static void start_counting(void) {
  int index = 0;
  int count = 0;
  MPI_T_pvar_session_create(&session);
  if (MPI_T_pvar_get_index("scoll_gba_offloaded", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
    abort();
  }
  MPI_T_pvar_handle_alloc(session, index, NULL, &by_device, &count);
  if (MPI_T_pvar_get_index("scoll_gba_fallen_back", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
    abort();
  }
  MPI_T_pvar_handle_alloc(session, index, NULL, &by_others, &count);
}

static void report_counts(void) {
  unsigned long long device = 0;
  unsigned long long others = 0;
  MPI_T_pvar_read(session, by_device, &device);
  MPI_T_pvar_read(session, by_others, &others);
  if (pe == 0) {
    printf("OpenSHMEM: by the device %llu, by others %llu\n", device, others);
  }
  MPI_T_pvar_session_free(&session);
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*run)(int count, char** numbers);
    int arguments;
  } cases[] = {{"world", world_case, 4},   {"sets", sets_case, 4},       {"mixed", mixed_case, 4},
               {"killed", killed_case, 6}, {"threads", threads_case, 4}, {"late", late_case, 4},
               {"absent", absent_case, 4}};
  int finalized = 0;
  if (count < 4) {
    return 2;
  }
  const int threads = strcmp(arguments[2], "threads") == 0;
  for (size_t i = 0; i < sizeof sync_words / sizeof sync_words[0][0]; ++i) {
    (&sync_words[0][0])[i] = SHMEM_SYNC_VALUE;
  }
  for (size_t i = 0; i < sizeof broadcast_words / sizeof broadcast_words[0][0]; ++i) {
    (&broadcast_words[0][0])[i] = SHMEM_SYNC_VALUE;
  }
  ranks_init(arguments[1], threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  if (threads) {
    int provided = 0;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    ranks_expect(provided == SHMEM_THREAD_MULTIPLE, "OpenSHMEM's level of threads");
  } else {
    shmem_init();
  }
  pe = shmem_my_pe();
  pes = shmem_n_pes();
  start_counting();
  ranks_watch(&world, MPI_COMM_WORLD, ranks_new_slot());
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (strcmp(arguments[2], cases[i].name) == 0 && count == cases[i].arguments) {
      cases[i].run(atoi(arguments[3]), arguments + 4);
    }
  }
  report_counts();
  const int code = ranks_report();
  shmem_finalize();
  MPI_Finalized(&finalized);
  if (!finalized) {
    MPI_Finalize();
  }
  return code;
}
