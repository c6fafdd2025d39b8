/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 9.1 to 9.3: set-up, exit, query, threads, memory. */
#include <mpp/shmem.h>
#include <pshmem.h>
#include <unistd.h>

#include "check.h"

static const int constant = 3;

static int initialized(void) {
  int answer = -1;
  shmem_query_initialized(&answer);
  return answer;
}

static void test_query(void) {
  const int me = shmem_my_pe(), pes = shmem_n_pes();
  CHECK(me >= 0 && me < pes && _my_pe() == me && _num_pes() == pes && pshmem_my_pe() == me);
  int major = 0, minor = 0;
  shmem_info_get_version(&major, &minor);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION && major == 1 && minor == 6);
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(name);
  CHECK(strncmp(name, SHMEM_VENDOR_STRING, strlen(SHMEM_VENDOR_STRING)) == 0);
  CHECK(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED && SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED &&
        SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE);
  shmem_pcontrol(0);
  shmem_pcontrol(2, "anything", 3.0);
}

static void test_access(void) {
  const int me = shmem_my_pe(), pes = shmem_n_pes(), one_node = getenv("SHMEM_HOST_ID") == NULL;
  long* block = (long*)shmem_malloc(sizeof(long));
  long local = 0;
  CHECK(!shmem_pe_accessible(-1) && !shmem_pe_accessible(pes));
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(shmem_pe_accessible(pe));
    CHECK(shmem_addr_accessible(block, pe) && shmem_addr_accessible(global_memory, pe));
    CHECK(!shmem_addr_accessible(&local, pe) && !shmem_addr_accessible(NULL, pe));
    CHECK(!shmem_addr_accessible(&constant, pe));
    CHECK(shmem_ptr(&local, pe) == NULL);
    CHECK(shmem_ptr(block, pe) == shmem_team_ptr(SHMEM_TEAM_WORLD, block, pe));
    CHECK(shmem_ptr(block, pe) != NULL || !one_node);
    CHECK((pe == me) == (shmem_ptr(block, pe) == (void*)block));
  }
  CHECK(!shmem_addr_accessible(block, pes) && shmem_ptr(block, -1) == NULL);
  CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, block, 0) == NULL && shmem_team_ptr(SHMEM_TEAM_WORLD, block, pes) == NULL);
  /* shmem_ptr returns the other PE's object, or NULL for a PE on another node. */
  const int right = (me + 1) % pes;
  if (shmem_ptr(block, right) == NULL) {
    CHECK(shmem_ptr(global_memory, right) == NULL);
    shmem_long_p(block, me, right);
    shmem_long_p((long*)(void*)global_memory, me, right);
  } else {
    *(long*)shmem_ptr(block, right) = me;
    *(long*)shmem_ptr(global_memory, right) = me;
  }
  shmem_barrier_all();
  CHECK(*block == (me + pes - 1) % pes && *(long*)(void*)global_memory == *block);
  shmem_free(block);
}

/* On all PEs the address has the same distance from another symmetric object. */
static void check_symmetric(void* block) {
  static long offset;
  static char* base;
  if (base == NULL) {
    base = (char*)shmem_malloc(64);
  }
  offset = (char*)block - base;
  shmem_barrier_all();
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    CHECK(shmem_long_g(&offset, pe) == offset);
  }
  shmem_barrier_all();
}

static void test_memory(void) {
  CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
  shmem_free(NULL);
  for (size_t alignment = sizeof(void*); alignment <= 1U << 16; alignment *= 2) {
    char* block = (char*)shmem_align(alignment, 100);
    CHECK(block != NULL && (uintptr_t)block % alignment == 0);
    check_symmetric(block);
    shmem_free(block);
  }
  char* dirty = (char*)shmem_malloc(10000);
  memset(dirty, 1, 10000);
  check_symmetric(dirty);
  shmem_free(dirty);
  char* clean = (char*)shmem_calloc(100, 100);
  for (int i = 0; i < 10000; ++i) {
    CHECK(clean[i] == 0);
  }
  for (int i = 0; i < 10000; ++i) {
    clean[i] = (char)(i % 50);
  }
  char* between = (char*)shmem_malloc(64);
  char* longer = (char*)shmem_realloc(clean, 100000);
  CHECK(longer != NULL);
  for (int i = 0; i < 10000; ++i) {
    CHECK(longer[i] == (char)(i % 50));
  }
  check_symmetric(longer);
  char* shorter = (char*)shmem_realloc(longer, 10);
  CHECK(shorter != NULL && shorter[9] == 9);
  CHECK(shmem_realloc(shorter, 0) == NULL);
  char* fresh = (char*)shmem_realloc(NULL, 50);
  CHECK(fresh != NULL);
  shmem_free(fresh);
  shmem_free(between);
  const long hints[] = {0, SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE,
                        SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE};
  for (int i = 0; i < 4; ++i) {
    void* hinted = shmem_malloc_with_hints(256, hints[i]);
    CHECK(hinted != NULL);
    check_symmetric(hinted);
    shmem_free(hinted);
  }
  CHECK(shmem_malloc_with_hints(0, 0) == NULL);
  CHECK(shmem_malloc((size_t)1 << 60) == NULL); /* and the library still works */
  /* Deprecated since 1.2. */
  char* old = (char*)shmalloc(100);
  old = (char*)shrealloc(old, 200);
  CHECK(old != NULL);
  shfree(old);
  old = (char*)shmemalign(256, 10);
  CHECK((uintptr_t)old % 256 == 0);
  shfree(old);
}

static int global_counter = 5;

/* Section 9.1: a shmem_finalize that does not end the library is a barrier. */
static void test_inner_finalize(void) {
  static long word;
  const int me = shmem_my_pe(), pes = shmem_n_pes();
  for (long round = 1; round <= 5; ++round) {
    shmem_init();
    if (me == 0) {
      usleep(20000);
    }
    shmem_long_put_nbi(&word, &round, 1, (me + 1) % pes);
    shmem_finalize();
    CHECK(initialized() == 1 && word == round);
    shmem_barrier_all();
  }
}

PE_PART(setup) {
  CHECK(initialized() == 0);
  int provided = -1;
  CHECK(shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) == 0 && provided == SHMEM_THREAD_FUNNELED);
  CHECK(initialized() == 1);
  test_query();
  test_access();
  test_memory();
  /* Section 9.1: the library ends with as many calls as have started it. */
  shmem_init();
  shmem_query_thread(&provided);
  CHECK(provided == SHMEM_THREAD_FUNNELED);
  shmem_finalize();
  CHECK(initialized() == 1);
  shmem_int_p(&global_counter, 10 + shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  const int left = (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
  CHECK(global_counter == 10 + left);
  test_inner_finalize();
  /* start_pes starts the library only if it does not run. */
  start_pes(0);
  start_pes(0);
  shmem_finalize();
  CHECK(initialized() == 0 && global_counter == 10 + left);
  /* The library may be started again, also by start_pes. */
  start_pes(0);
  CHECK(initialized() == 1);
  shmem_query_thread(&provided);
  CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE);
  long* block = (long*)shmem_calloc(1, sizeof(long));
  shmem_long_atomic_inc(block, 0);
  shmem_barrier_all();
  CHECK(shmem_long_g(block, 0) == shmem_n_pes());
  return 0; /* the library ends when main returns */
}
