/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Point-to-point synchronisation and locks (OpenSHMEM 1.6, sections 9.11 and 9.13). Included by shmem.h.
 *
 * The words are this PE's own, symmetric and aligned; other PEs change them by atomics, puts of one element and
 * signals. Stores before such a change are visible to a PE that has seen it. Thread-safe.
 */
#ifndef SHMEM_SHMEM_WAIT_H
#define SHMEM_SHMEM_WAIT_H

#include "shmem_context.h"
#include "shmem_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_GE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_LE 5

/*
 * wait_until waits until *ivar satisfies the comparison with `cmp_value`; test checks once and returns 1 or 0.
 *
 * _all, _any and _some are for `nelems` words. Those whose status[i] is not 0 are skipped; NULL skips none.
 * wait_until_all and test_all: all satisfy the comparison, also if all are skipped. _any returns the index of one that
 * does, SIZE_MAX if all are skipped or (test) none does. _some returns how many do and puts their indices into
 * `indices`, which has room for nelems; 0 if all are skipped or (test) none does. In the _vector forms
 * word i is compared with cmp_values[i].
 */
#define SHMEM_DECLARE_WAIT(NAME, TYPE)                                           \
  SHMEM_DECLARE(void, NAME##_wait_until, (TYPE * ivar, int cmp, TYPE cmp_value)) \
  SHMEM_DECLARE(int, NAME##_test, (TYPE * ivar, int cmp, TYPE cmp_value))
SHMEM_AMO_TYPES(SHMEM_DECLARE_WAIT)
SHMEM_OLD_WAIT_TYPES(SHMEM_DECLARE_WAIT) /* deprecated since 1.5 */
#undef SHMEM_DECLARE_WAIT

#define SHMEM_DECLARE_WAIT(NAME, TYPE)                                                                               \
  SHMEM_DECLARE(void, NAME##_wait_until_all,                                                                         \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, TYPE cmp_value))                           \
  SHMEM_DECLARE(size_t, NAME##_wait_until_any,                                                                       \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, TYPE cmp_value))                           \
  SHMEM_DECLARE(size_t, NAME##_wait_until_some,                                                                      \
                (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, TYPE cmp_value))         \
  SHMEM_DECLARE(void, NAME##_wait_until_all_vector,                                                                  \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, const TYPE* cmp_values))                   \
  SHMEM_DECLARE(size_t, NAME##_wait_until_any_vector,                                                                \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, const TYPE* cmp_values))                   \
  SHMEM_DECLARE(size_t, NAME##_wait_until_some_vector,                                                               \
                (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, const TYPE* cmp_values)) \
  SHMEM_DECLARE(int, NAME##_test_all, (TYPE * ivars, size_t nelems, const int* status, int cmp, TYPE cmp_value))     \
  SHMEM_DECLARE(size_t, NAME##_test_any, (TYPE * ivars, size_t nelems, const int* status, int cmp, TYPE cmp_value))  \
  SHMEM_DECLARE(size_t, NAME##_test_some,                                                                            \
                (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, TYPE cmp_value))         \
  SHMEM_DECLARE(int, NAME##_test_all_vector,                                                                         \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, const TYPE* cmp_values))                   \
  SHMEM_DECLARE(size_t, NAME##_test_any_vector,                                                                      \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, const TYPE* cmp_values))                   \
  SHMEM_DECLARE(size_t, NAME##_test_some_vector,                                                                     \
                (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, const TYPE* cmp_values))
SHMEM_AMO_TYPES(SHMEM_DECLARE_WAIT)
SHMEM_OLD_WAIT_TYPES(SHMEM_DECLARE_WAIT) /* of drafts of 1.5 */
#undef SHMEM_DECLARE_WAIT

/* Waits until this PE's own signal compares so; gives its value then. SHMEM_BARRIER_TIMEOUT, if it is set, ends the
 * job. */
SHMEM_DECLARE(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value))

/* Deprecated since 1.4: wait waits until *ivar is no longer `cmp_value`. */
SHMEM_DECLARE(void, wait_until, (long* ivar, int cmp, long cmp_value))
SHMEM_DECLARE(void, wait, (long* ivar, long cmp_value))
SHMEM_DECLARE(void, short_wait, (short* ivar, short cmp_value))
SHMEM_DECLARE(void, int_wait, (int* ivar, int cmp_value))
SHMEM_DECLARE(void, long_wait, (long* ivar, long cmp_value))
SHMEM_DECLARE(void, longlong_wait, (long long* ivar, long long cmp_value))

/*
 * Locks. The lock is a symmetric long, 0 before its first use on all PEs, and one for all: PEs get it in the order of
 * their requests. Puts and stores of a holder before clear_lock are visible to the next holder. test_lock returns 0 if
 * it has taken the lock, 1 if another PE holds it. Setting a lock that this PE holds, or clearing one that it does not
 * hold, ends the job.
 */
SHMEM_DECLARE(void, set_lock, (long* lock))
SHMEM_DECLARE(void, clear_lock, (long* lock))
SHMEM_DECLARE(int, test_lock, (long* lock))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
