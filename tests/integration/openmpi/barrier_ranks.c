/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_ranks FILE CASE [NUMBER...]: the ranks of one test. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ranks.h"
#include "whose.h"

static tested_t world;
static int rank, size;

/* world N: blocking barriers of MPI_COMM_WORLD. */
static void world_case(char** numbers) {
  for (int count = atoi(numbers[0]); count > 0; --count) {
    ranks_barrier(&world);
  }
}

/* mixed N: blocking and non-blocking barriers, up to 4 at the same time, the first of them non-blocking. */
static void mixed_case(char** numbers) {
  for (int round = 0; round < atoi(numbers[0]); ++round) {
    ranks_ibarriers(&world, 1 + round % 4);
    if (round % 3 == 1) {
      ranks_barrier(&world);
    }
  }
}

static _Atomic long yields;

/* In place of libc's, also for libraries. */
__attribute__((visibility("default"))) int sched_yield(void) {
  atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
  return (int)syscall(SYS_sched_yield);
}

/* How often this process has given its processor up. */
static long times_given_up(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return atomic_load_explicit(&yields, memory_order_relaxed) + usage.ru_nvcsw;
}

/* tested N: rank 0 tests an MPI_Ibarrier N times before the last rank enters it, and prints how often it has given its
 * processor up in them. */
static void tested_case(char** numbers) {
  const int tests = atoi(numbers[0]);
  int done = 0;
  MPI_Request request;
  tested_t tests_are_made;
  ranks_watch(&tests_are_made, MPI_COMM_WORLD, ranks_new_slot());
  ranks_barrier(&world);
  if (rank == size - 1) {
    ranks_wait_for_others(&tests_are_made);
  }
  const uint64_t entered = ranks_enter(&world);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  if (rank == 0) {
    const long before = times_given_up();
    for (int i = 0; i < tests; ++i) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      ranks_expect(!done, "the last rank has not entered");
    }
    printf("given up %ld\n", times_given_up() - before);
  }
  ranks_enter(&tests_are_made);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ranks_check(&world, entered);
}

/* Blocking and non-blocking barriers in turn; slots with odd numbers begin with non-blocking ones. */
static void exercise(tested_t* tested, int rounds) {
  if (tested->comm == MPI_COMM_NULL) {
    return;
  }
  for (int round = 0; round < rounds; ++round) {
    if ((round + tested->slot) % 2 == 0) {
      ranks_barrier(tested);
    } else {
      ranks_ibarriers(tested, 2);
    }
  }
}

/* A communicator of ranks `low` to `high`. */
static MPI_Comm range(int low, int high) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank >= low && rank <= high ? 0 : MPI_UNDEFINED, -rank, &comm);
  return comm;
}

/* kinds N: N rounds on each kind of communicator, among them two that overlap. */
static void kinds_case(char** numbers) {
  const int rounds = atoi(numbers[0]);
  enum { KINDS = 7 };
  MPI_Comm comms[KINDS];
  tested_t tested[KINDS];
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[1]);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms[2]);
  comms[3] = range(0, size / 2);
  comms[4] = range(size / 2, size - 1);
  MPI_Comm_idup(MPI_COMM_WORLD, &comms[5], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_dup(MPI_COMM_SELF, &comms[6]);
  for (int kind = 0; kind < KINDS; ++kind) {
    ranks_watch(&tested[kind], comms[kind], ranks_new_slot());
  }
  for (int round = 0; round < rounds; ++round) {
    for (int kind = 0; kind < KINDS; ++kind) {
      exercise(&tested[kind], 2);
    }
    ranks_barrier(&world);
  }
  for (int kind = 0; kind < KINDS; ++kind) {
    if (comms[kind] != MPI_COMM_NULL) {
      MPI_Comm_free(&comms[kind]);
    }
  }
}

/* many N ROUNDS: N communicators at the same time, world among them. */
static void many_case(char** numbers) {
  enum { MOST = 64 };
  const int count = atoi(numbers[0]) - 1;
  MPI_Comm comms[MOST];
  tested_t tested[MOST];
  ranks_barrier(&world);
  for (int i = 0; i < count; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    ranks_watch(&tested[i], comms[i], ranks_new_slot());
    ranks_barrier(&tested[i]);
  }
  for (int round = 0; round < atoi(numbers[1]); ++round) {
    for (int i = 0; i < count; ++i) {
      exercise(&tested[i], 2);
    }
  }
  for (int i = 0; i < count; ++i) {
    MPI_Comm_free(&comms[i]);
  }
}

/* churn N: communicators made and freed, used once, by an MPI_Ibarrier, or not at all. */
static void churn_case(char** numbers) {
  const int slot = ranks_new_slot();
  for (int i = 0; i < atoi(numbers[0]); ++i) {
    MPI_Comm comm;
    tested_t tested;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 3 != 2) {
      ranks_watch(&tested, comm, slot);
      exercise(&tested, 1 + i % 2);
    }
    MPI_Comm_free(&comm);
  }
  ranks_barrier(&world);
}

/* loop N BARRIERS: N times a duplicate, a half and an MPI_Comm_idup of MPI_COMM_WORLD, each with that many barriers,
 * and freed. */
static void loop_case(char** numbers) {
  for (int i = 0; i < atoi(numbers[0]); ++i) {
    MPI_Comm comms[3];
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[1]);
    MPI_Comm_idup(MPI_COMM_WORLD, &comms[2], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int kind = 0; kind < 3; ++kind) {
      for (int barrier = 0; barrier < atoi(numbers[1]); ++barrier) {
        ranks_expect(MPI_Barrier(comms[kind]) == MPI_SUCCESS, "MPI_Barrier");
      }
      MPI_Comm_free(&comms[kind]);
    }
  }
}

/* inter N: an intercommunicator and MPI_COMM_SELF, which the component does not handle. */
static void inter_case(char** numbers) {
  MPI_Comm half;
  MPI_Comm inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
  for (int count = atoi(numbers[0]); count > 0; --count) {
    MPI_Request request;
    ranks_expect(MPI_Barrier(inter) == MPI_SUCCESS, "MPI_Barrier of an intercommunicator");
    ranks_expect(MPI_Ibarrier(inter, &request) == MPI_SUCCESS, "MPI_Ibarrier of an intercommunicator");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ranks_expect(MPI_Barrier(MPI_COMM_SELF) == MPI_SUCCESS, "MPI_Barrier of MPI_COMM_SELF");
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/* killed N AT PID: rank 0 kills the device before its barrier AT. */
static void killed_case(char** numbers) {
  const int at = atoi(numbers[1]);
  for (int i = 0; i < atoi(numbers[0]); ++i) {
    if (i == at && rank == 0) {
      kill(atoi(numbers[2]), SIGKILL);
    }
    if (i % 5 == 4) {
      ranks_ibarriers(&world, 3);
    } else {
      ranks_barrier(&world);
    }
  }
}

/* parting N AT PID: a barrier of MPI_COMM_WORLD, then N communicators, each freed right after its only barrier. After
 * AT of them the last rank kills the device, unless PID is 0, while other ranks may already be in the next barrier. */
static void parting_case(char** numbers) {
  const int slot = ranks_new_slot();
  const int device = atoi(numbers[2]);
  ranks_barrier(&world);
  for (int i = 0; i < atoi(numbers[0]); ++i) {
    MPI_Comm comm;
    tested_t tested;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ranks_watch(&tested, comm, slot);
    if (i == atoi(numbers[1]) && rank == size - 1 && device != 0) {
      kill(device, SIGKILL);
    }
    ranks_barrier(&tested);
    MPI_Comm_free(&comm);
  }
  ranks_barrier(&world);
}

/* whose N: prints the functions that MPI calls after N barriers. */
static void whose_case(char** numbers) {
  world_case(numbers);
  if (rank == 0) {
    whose_print(MPI_COMM_WORLD);
  }
}

/* idle 0: no barrier at all. */
static void idle_case(char** numbers) {
  (void)numbers;
}

static int rounds_of_threads;
static tested_t of_threads[8];

static void* thread_of_ranks(void* context) {
  exercise(context, rounds_of_threads);
  return NULL;
}

/* threads N THREADS: each thread has N rounds of its own communicator. */
static void threads_case(char** numbers) {
  const int threads = atoi(numbers[1]);
  pthread_t ids[8];
  MPI_Comm comms[8];
  rounds_of_threads = atoi(numbers[0]);
  for (int i = 0; i < threads; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    ranks_watch(&of_threads[i], comms[i], ranks_new_slot());
    pthread_create(&ids[i], NULL, thread_of_ranks, &of_threads[i]);
  }
  exercise(&world, rounds_of_threads);
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
  }
  for (int i = 0; i < threads; ++i) {
    MPI_Comm_free(&comms[i]);
  }
}

/* reset N AT COMMAND: rank 0 runs COMMAND before its barrier AT. */
static void reset_case(char** numbers) {
  for (int i = 0; i < atoi(numbers[0]); ++i) {
    if (i == atoi(numbers[1]) && rank == 0) {
      usleep(100000); /* the other ranks have entered the barrier */
      ranks_expect(system(numbers[2]) == 0, numbers[2]);
    }
    ranks_barrier(&world);
  }
}

/* late RANK BEFORE AT_ONCE: after BEFORE barriers RANK does not enter the next one, which is an MPI_Barrier or, if
 * AT_ONCE is not 0, that many MPI_Ibarriers. If BEFORE is 0 it is a barrier of a new communicator, whose members cannot
 * have agreed on a device, since RANK does nothing for it. The rank whose error ends the job enters last, so that only
 * RANK is missing there. */
static void late_case(char** numbers) {
  const int late = atoi(numbers[0]);
  const int before = atoi(numbers[1]);
  const int at_once = atoi(numbers[2]);
  const int ends_the_job = rank == (late == 0 ? 1 : 0);
  tested_t tested = world;
  tested_t callers;
  ranks_watch(&callers, MPI_COMM_WORLD, ranks_new_slot());
  for (int i = 0; i < before; ++i) {
    ranks_barrier(&tested);
  }
  if (before == 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &tested.comm);
  }
  if (rank == late) {
    ranks_enter(&callers);
    pause();
  }
  if (ends_the_job) {
    ranks_wait_for_others(&callers);
  } else {
    ranks_enter(&callers);
    MPI_Comm_set_errhandler(tested.comm, MPI_ERRORS_RETURN);
  }
  if (at_once > 0) {
    ranks_ibarriers(&tested, at_once);
  } else {
    ranks_barrier(&tested);
  }
  if (!ends_the_job) {
    pause(); /* so that all ranks name the missing one */
  }
}

static int barrier_of_either_kind(int blocking) {
  MPI_Request request;
  if (blocking) {
    return MPI_Barrier(MPI_COMM_WORLD);
  }
  const int error = MPI_Ibarrier(MPI_COMM_WORLD, &request);
  return error != MPI_SUCCESS ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* again BEFORE: the last rank enters only after the calls of the others have failed; they repeat the call, blocking and
 * non-blocking in turn, until it has entered. */
static void again_case(char** numbers) {
  const int before = atoi(numbers[0]);
  int calls = 0;
  int error = MPI_SUCCESS;
  const int is_late = rank == size - 1;
  tested_t failed;
  ranks_watch(&failed, MPI_COMM_WORLD, ranks_new_slot());
  for (int i = 0; i < before; ++i) {
    ranks_barrier(&world);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (is_late) {
    ranks_wait_for_others(&failed);
  }
  const uint64_t entered = ranks_enter(&world);
  do {
    error = barrier_of_either_kind((before + ++calls) % 2);
    if (calls == 1) {
      ranks_enter(&failed);
    }
  } while (error != MPI_SUCCESS && calls < 100);
  ranks_check(&world, entered);
  ranks_expect((calls > 1) == !is_late, "only the barriers of waiting ranks fail");
  ranks_barrier(&world);
  ranks_ibarriers(&world, 3);
}

/* dies RANK N: RANK is killed when the others are in the barrier after N. */
static void dies_case(char** numbers) {
  for (int before = atoi(numbers[1]); before > 0; --before) {
    ranks_barrier(&world);
  }
  if (rank == atoi(numbers[0])) {
    usleep(200000);
    raise(SIGKILL);
  }
  ranks_barrier(&world);
}

static char* file;

static void barriers_with_spawned(MPI_Comm inter, int high) {
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, high, &merged);
  for (int i = 0; i < 5; ++i) {
    ranks_expect(MPI_Barrier(inter) == MPI_SUCCESS, "MPI_Barrier with spawned processes");
    ranks_expect(MPI_Barrier(merged) == MPI_SUCCESS, "MPI_Barrier of merged communicators");
    ranks_barrier(&world);
  }
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&inter);
}

/* spawn PROGRAM: spawns two more processes, which have their own MPI_COMM_WORLD. */
static void spawn_case(char** numbers) {
  char spawned[4096];
  char* arguments[] = {spawned, "spawned", "0", NULL};
  MPI_Comm inter;
  snprintf(spawned, sizeof spawned, "%s.spawned", file);
  MPI_Comm_spawn(numbers[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  barriers_with_spawned(inter, 0);
}

/* spawned 0: the spawned processes. */
static void spawned_case(char** numbers) {
  MPI_Comm inter;
  (void)numbers;
  MPI_Comm_get_parent(&inter);
  barriers_with_spawned(inter, 1);
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*run)(char** numbers);
    int numbers;
  } cases[] = {{"world", world_case, 1},     {"mixed", mixed_case, 1},     {"kinds", kinds_case, 1},
               {"many", many_case, 2},       {"churn", churn_case, 1},     {"inter", inter_case, 1},
               {"killed", killed_case, 3},   {"late", late_case, 3},       {"parting", parting_case, 3},
               {"idle", idle_case, 1},       {"threads", threads_case, 2}, {"reset", reset_case, 3},
               {"again", again_case, 1},     {"dies", dies_case, 2},       {"spawn", spawn_case, 1},
               {"spawned", spawned_case, 1}, {"whose", whose_case, 1},     {"loop", loop_case, 2},
               {"tested", tested_case, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (count < 3 || strcmp(arguments[2], cases[i].name) != 0 || count != 3 + cases[i].numbers) {
      continue;
    }
    file = arguments[1];
    ranks_init(file, strcmp(cases[i].name, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ranks_watch(&world, MPI_COMM_WORLD, ranks_new_slot());
    cases[i].run(arguments + 3);
    return ranks_finalize();
  }
  fprintf(stderr, "usage: barrier_ranks FILE CASE NUMBER...\n");
  return 2;
}
