/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the conformance programs, which are compiled as C11 and as C++. Each check says what it expects. */
#ifndef OPENSHMEM_CONFORMANCE_CHECK_H
#define OPENSHMEM_CONFORMANCE_CHECK_H

#include <pthread.h>
#include <unistd.h>

#include "check.h"

#define EXPECT(condition, expected)               \
  do {                                            \
    if (!(condition)) {                           \
      pe_end_job(__FILE__, __LINE__, (expected)); \
    }                                             \
  } while (0)

static int me, pes;

static inline void start(void) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
}

/* In each round another PE is late, so that a call that does not wait for it has time to return. */
static inline void come_late(int round) {
  if (round % pes == me) {
    usleep(5000);
  }
}

/* Runs body(argument) in another thread and waits for its end. */
static inline void in_another_thread(void* (*body)(void*), void* argument) {
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, body, argument) == 0, "a thread can be started");
  EXPECT(pthread_join(thread, NULL) == 0, "a thread ends");
}

#endif
