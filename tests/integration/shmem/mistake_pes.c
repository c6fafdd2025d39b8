/* SPDX-License-Identifier: Apache-2.0 */
/* PEs of which one makes a mistake, by argv[1], while the others wait in a barrier or a reduction. The test knows its
 * lines. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void on_signal(int number) {
  handled = number;
}

__attribute__((noinline)) static void make_mistake(const char* kind, int pe) {
  long local = 1;
  if (strcmp(kind, "address") == 0) {
    shmem_long_put(&local, &local, 1, pe == 0 ? 1 : 0); /* line: address */
  } else if (strcmp(kind, "segv") == 0) {
    *(volatile int*)8 = 1; /* line: segv */
  } else if (strcmp(kind, "abort") == 0) {
    abort(); /* line: abort */
  } else if (strcmp(kind, "null") == 0) {
    void (*volatile nothing)(void) = NULL;
    nothing(); /* line: null */
  } else if (strcmp(kind, "stack") == 0) {
    volatile char room[65536];
    room[0] = 0;
    make_mistake(kind, pe + room[0]);
    room[1] = 0;
  } else if (strcmp(kind, "own") == 0) { /* the program's own handler is called, and the job goes on */
    raise(SIGFPE);
    if (handled != SIGFPE) {
      abort();
    }
  } else if (strcmp(kind, "exit") == 0 || strcmp(kind, "sum") == 0) {
    exit(3);
  } else if (strcmp(kind, "fork") == 0) { /* a child's end is not the PE's */
    const pid_t child = fork();
    if (child == 0) {
      abort();
    }
    waitpid(child, NULL, 0); /* oshrun tells of children that are left behind */
  }
}

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  if (strcmp(kind, "own") == 0) {
    signal(SIGFPE, on_signal);
  }
  shmem_init();
  const int pe = shmem_my_pe();
  if (pe == shmem_n_pes() / 2 || strcmp(kind, "all") == 0) {
    make_mistake(strcmp(kind, "all") == 0 ? "address" : kind, pe);
  }
  if (strcmp(kind, "sum") == 0) { /* returns an error, and the program goes on */
    static long values[2];
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &values[0], &values[1], 1);
  }
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
