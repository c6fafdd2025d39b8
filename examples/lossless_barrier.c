/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers of a GBA among processes that share memory, with neither OpenSHMEM nor MPI: libgba alone (gba/barrier.h).
 *
 *   lossless_barrier DEVICE [PROCESSES [SECONDS]]
 *
 * It survives its device: kill a gba-fake-device while this runs, and start it again. Barriers go on in software, and
 * use the device again when it is back. Runs until SIGINT if SECONDS is 0.
 */
#define _GNU_SOURCE /* memfd_create */  // NOLINT(bugprone-reserved-identifier)
#include <errno.h>
#include <gba/barrier.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 64

/* Written by one process for the others, on its own cache line. */
typedef struct {
  _Alignas(64) uint64_t word[2]; /* libgba's */
  _Atomic uint64_t entered;      /* to check that no process leaves a barrier early */
  _Atomic int joined;
} Member;

typedef struct {
  gba_group_handle offer; /* libgba's: how members find the group of the device, also after it was lost */
  atomic_int stop;        /* the parent: end soon */
  atomic_int aborted;     /* the parent: a process has died, do not wait for it */
  _Atomic uint64_t last;  /* member 0: the last barrier, for all */
  _Atomic uint64_t early, by_device, in_software;
  Member members[MOST];
} Shared;

static Shared* shared;
static uint32_t size = 4;

static void stop(int number) {
  (void)number;
  atomic_store(&shared->stop, 1);
}

static int fail(uint32_t me, const char* what, const char* why) {
  fprintf(stderr, "lossless_barrier: process %u: %s: %s\n", me, what, why);
  return 1;
}

/* Called before each sleep in a barrier: is there still something to wait for? */
static int check(void* context, uint64_t* longest_ns) {
  (void)context;
  (void)longest_ns;
  return atomic_load(&shared->aborted) ? -ECANCELED : 0;
}

/* Barrier k; returns a result of gba/barrier.h. */
static int pass(gba_barrier* barrier, uint32_t me, uint64_t k) {
  const gba_barrier_waiting waiting = {.spins = 100, .yields = 10, .check = check};
  atomic_store_explicit(&shared->members[me].entered, k, memory_order_relaxed);
  gba_barrier_arrive(barrier, k);
  const int result = gba_barrier_wait(barrier, &waiting, GBA_WAIT_FOREVER);
  for (uint32_t i = 0; i < size && result >= 0; ++i) {
    /* Relaxed: the barrier makes the others' stores visible. */
    if (atomic_load_explicit(&shared->members[i].entered, memory_order_relaxed) < k) {
      atomic_fetch_add(&shared->early, 1);
    }
  }
  return result;
}

/* All agree to use a group of the device from barrier 4 on. Earlier barriers are done in software, by the same calls.
 * Returns 0 also if the device is not available now: the request is repeated from time to time. */
static int agree(gba_barrier* barrier, uint32_t me) {
  const uint64_t sequence = 3;
  int able = 1;
  if (me == 0) {
    atomic_store(&shared->members[0].joined, gba_barrier_offer(barrier, sequence, NULL) == 0);
  }
  if (pass(barrier, me, 1) < 0) {
    return -1;
  }
  if (atomic_load(&shared->members[0].joined)) {
    const int joined = gba_barrier_join(barrier, NULL) == 0;
    if (pass(barrier, me, 2) < 0) {
      return -1;
    }
    atomic_store(&shared->members[me].joined, joined);
    if (pass(barrier, me, 3) < 0) {
      return -1;
    }
    for (uint32_t i = 0; i < size; ++i) {
      able = able && atomic_load(&shared->members[i].joined);
    }
    if (able) {
      gba_barrier_begin(barrier, sequence);
      return 0;
    }
  } else if (pass(barrier, me, 2) < 0 || pass(barrier, me, 3) < 0) {
    return -1;
  }
  gba_barrier_leave(barrier);
  gba_barrier_free(barrier);
  return 0;
}

static void announce_end(const gba_barrier* barrier, uint64_t k) {
  gba_barrier_status status;
  gba_barrier_get_status(barrier, &status);
  if (status.uses_device) {
    printf("barrier %llu: the device does the next ones\n", (unsigned long long)k);
  } else {
    printf("barrier %llu: software does the next ones: %s\n", (unsigned long long)k, status.trouble);
  }
  fflush(stdout);
}

static int run(gba_barrier* barrier, uint32_t me, double seconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double begin = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  if (agree(barrier, me) < 0) {
    return fail(me, "agreement", "another process has died");
  }
  int used = gba_barrier_uses_device(barrier);
  if (me == 0) {
    announce_end(barrier, 3);
  }
  for (uint64_t k = 4;; ++k) {
    if (me == 0 && atomic_load(&shared->last) == 0) {
      clock_gettime(CLOCK_MONOTONIC, &now);
      const int over = seconds > 0 && (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - begin > seconds;
      /* All members see it after barrier k, and end after the same barrier. */
      if (over || atomic_load(&shared->stop)) {
        atomic_store(&shared->last, k + 1);
      }
    }
    if (pass(barrier, me, k) < 0) {
      return fail(me, "a barrier", "another process has died");
    }
    if (gba_barrier_uses_device(barrier) != used) {
      used = !used;
      if (me == 0) {
        announce_end(barrier, k);
      }
    }
    if (k == atomic_load(&shared->last)) {
      break;
    }
  }
  gba_barrier_status status;
  gba_barrier_get_status(barrier, &status);
  atomic_fetch_add(&shared->by_device, status.by_device);
  atomic_fetch_add(&shared->in_software, status.in_software);
  return 0;
}

static int be_member(const char* device, uint32_t me, double seconds) {
  gba_barrier_port* port;
  gba_barrier* barrier;
  if (gba_barrier_port_open(device, &port) != 0) {
    return fail(me, device, gba_error_text());
  }
  const gba_barrier_config config = {.size = sizeof(config),
                                     .members = size,
                                     .member = me,
                                     .word = shared->members[me].word,
                                     .words = shared->members[0].word,
                                     .stride = sizeof(Member),
                                     .port = port,
                                     .offer = &shared->offer,
                                     .retry_ns = 10000000};
  if (gba_barrier_create(&config, &barrier) != 0) {
    return fail(me, "gba_barrier_create", gba_error_text());
  }
  const int result = run(barrier, me, seconds);
  gba_barrier_destroy(barrier);
  gba_barrier_port_close(port);
  return result;
}

static Shared* share_memory(void) {
  const int fd = memfd_create("lossless_barrier", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) {
    return NULL;
  }
  void* const memory = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

int main(int argc, char** argv) {
  const int processes = argc > 2 ? atoi(argv[2]) : (int)size;
  const double seconds = argc > 3 ? atof(argv[3]) : 2;
  if (argc < 2 || argc > 4 || processes < 1 || processes > MOST || seconds < 0) {
    fprintf(stderr, "Usage: %s DEVICE [PROCESSES [SECONDS]]\n", argv[0]);
    return 2;
  }
  size = (uint32_t)processes;
  shared = share_memory();
  if (shared == NULL) {
    return fail(0, "shared memory", strerror(errno));
  }
  for (uint32_t me = 0; me < size; ++me) {
    const pid_t child = fork();
    if (child < 0) {
      atomic_store(&shared->aborted, 1);
      return fail(me, "fork", strerror(errno));
    }
    if (child == 0) {
      signal(SIGINT, SIG_IGN);
      _exit(be_member(argv[1], me, seconds));
    }
  }
  signal(SIGINT, stop);
  int failed = 0;
  for (uint32_t left = size; left > 0;) {
    int status = 0;
    if (wait(&status) < 0) {
      if (errno == EINTR) {
        continue;
      }
      break;
    }
    --left;
    if (status != 0) {
      failed = 1;
      atomic_store(&shared->aborted, 1);
    }
  }
  printf("%u process%s: %llu barriers released by the device, %llu completed in software\n", size,
         size == 1 ? "" : "es", (unsigned long long)atomic_load(&shared->by_device),
         (unsigned long long)atomic_load(&shared->in_software));
  if (failed || atomic_load(&shared->early) > 0) {
    printf("lossless_barrier: wrong: %llu times a barrier was left early\n",
           (unsigned long long)atomic_load(&shared->early));
    return 1;
  }
  printf("lossless_barrier: correct\n");
  return 0;
}
