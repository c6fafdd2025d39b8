/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.13: what test_lock returns, what the next holder sees, several locks. */
#include "conformance_check.h"

static long lock;

/* While a PE holds the lock, test_lock returns 1 without waiting; when it is free, one PE of all gets it. */
static void test_test_lock(void) {
  static long winners;
  for (int holder = 0; holder < pes; ++holder) {
    if (me == holder) {
      shmem_set_lock(&lock);
    }
    shmem_barrier_all();
    EXPECT(me == holder || shmem_test_lock(&lock) == 1, "test_lock returns 1 while another PE holds the lock");
    shmem_barrier_all();
    if (me == holder) {
      shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    const int won = shmem_test_lock(&lock);
    EXPECT(won == 0 || won == 1, "test_lock returns 0 or 1");
    if (won == 0) {
      shmem_long_atomic_inc(&winners, 0);
    }
    shmem_barrier_all();
    EXPECT(shmem_long_g(&winners, 0) == holder + 1, "one PE of all gets a lock that is free");
    if (won == 0) {
      shmem_clear_lock(&lock); /* as one that set_lock has taken */
    }
    shmem_barrier_all();
  }
  shmem_set_lock(&lock);
  shmem_clear_lock(&lock);
  shmem_barrier_all();
}

/* clear_lock completes what the holder did, stores too, before the next holder comes. */
static void test_next_holder_sees_all(void) {
  enum { kLong = 300 };
  static long data[kLong], turn;
  long source[kLong], seen[kLong];
  for (int i = 0; i < 50; ++i) {
    shmem_set_lock(&lock);
    shmem_long_get(seen, data, kLong, pes - 1);
    for (int k = 1; k < kLong; ++k) {
      EXPECT(seen[k] == seen[0], "the last holder's nonblocking put is complete");
    }
    EXPECT(shmem_long_atomic_fetch(&turn, 0) == seen[0], "the last holder's atomic is complete");
    for (int k = 0; k < kLong; ++k) {
      source[k] = seen[0] + 1;
    }
    long* direct = (long*)shmem_ptr(data, pes - 1);
    if (direct != NULL && i % 3 == 0) {
      memcpy(direct, source, sizeof source);
    } else {
      shmem_long_put_nbi(data, source, kLong, pes - 1);
    }
    shmem_long_atomic_inc(&turn, 0);
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  EXPECT(shmem_long_g(&turn, 0) == 50L * pes, "each PE had the lock as often as it asked");
}

/* Locks are independent of each other, whatever memory they are in: a PE may hold several. */
static void test_several_locks(void) {
  enum { kLocks = 5 };
  static long sums[kLocks];
  long* locks = (long*)shmem_calloc(kLocks, sizeof(long));
  EXPECT(locks != NULL, "there is memory for locks");
  if (me == 0) {
    shmem_set_lock(&locks[0]);
  }
  shmem_barrier_all();
  for (int i = 0; i < 40; ++i) {
    for (int k = 1; k < kLocks; ++k) {
      shmem_set_lock(&locks[k]);
      shmem_long_p(&sums[k], shmem_long_g(&sums[k], 0) + 1, 0);
    }
    for (int k = kLocks - 1; k > 0; --k) {
      shmem_clear_lock(&locks[k]);
    }
  }
  shmem_barrier_all();
  for (int k = 1; k < kLocks; ++k) {
    EXPECT(shmem_long_g(&sums[k], 0) == 40L * pes, "each lock excludes by itself");
    EXPECT(shmem_long_g(&locks[k], 0) == 0, "a lock that nobody holds is 0 again");
  }
  if (me == 0) {
    shmem_clear_lock(&locks[0]);
  }
  shmem_free(locks);
}

/* A PE that waits for a lock gets it when the holder clears it, and not before. */
static void test_waiting(void) {
  static long holds;
  for (int round = 0; round < pes; ++round) {
    shmem_set_lock(&lock);
    EXPECT(shmem_long_atomic_fetch_inc(&holds, 0) == 0, "one PE holds the lock at a time");
    usleep(1000);
    EXPECT(shmem_long_atomic_fetch_add(&holds, -1, 0) == 1, "no other PE has got the lock meanwhile");
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
}

PE_PART(conformance_locks) {
  start();
  test_test_lock();
  test_next_holder_sees_all();
  test_several_locks();
  test_waiting();
  shmem_finalize();
  return 0;
}
