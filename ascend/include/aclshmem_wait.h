/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: point-to-point synchronisation. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_WAIT_H
#define SHMEM_ACLSHMEM_WAIT_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "aclshmem_types.h"

/* ---- Waiting for words, and testing them ----
 *
 * The words are symmetric and aligned: this PE's, or, by the address that aclshmem_ptr gives, those of another PE of
 * this node, which a wait looks at once in a millisecond. Elements whose status is not 0 are skipped, none if `status`
 * is NULL. _vector: a value for each element. *result becomes 1 or 0; the index of an element, or SIZE_MAX; or a
 * number of elements, whose indices are in `indices`. A wait for no elements ends at once.
 *
 * C++ also has the calls with results in the form for kernels (aclshmem_device.h), which return the result. */

ACLSHMEM_INLINE size_t aclshmemi_wait(const char* call, int type, void* ivars, size_t nelems, const int* status,
                                      int cmp, const void* values, int value_for_each, int which,
                                      size_t* indices) SHMEM_NOEXCEPT {
  const shmemx_elements_t elements = {call, ivars, type, nelems, status, cmp, values, value_for_each};
  shmemx_await_default_stream();
  return shmemx_wait_elements(&elements, which | SHMEMX_MAPPED, indices);
}
ACLSHMEM_INLINE size_t aclshmemi_test(const char* call, int type, void* ivars, size_t nelems, const int* status,
                                      int cmp, const void* values, int value_for_each, int which,
                                      size_t* indices) SHMEM_NOEXCEPT {
  const shmemx_elements_t elements = {call, ivars, type, nelems, status, cmp, values, value_for_each};
  shmemx_await_default_stream();
  return shmemx_test_elements(&elements, which | SHMEMX_MAPPED, indices);
}

/* Wait until the word is not `value`; until it, or all of them, satisfy the comparison. */
#define ACLSHMEMI_WAIT(NAME, T, TYPE)                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_wait(T* ivar, T value) SHMEM_NOEXCEPT {                                      \
    aclshmemi_wait("aclshmem_" #NAME "_wait", TYPE, ivar, 1, NULL, SHMEM_CMP_NE, &value, 0, SHMEMX_ALL, NULL);        \
  }                                                                                                                   \
  ACLSHMEM_INLINE void aclshmem_##NAME##_wait_until(T* ivar, int cmp, T value) SHMEM_NOEXCEPT {                       \
    aclshmemi_wait("aclshmem_" #NAME "_wait_until", TYPE, ivar, 1, NULL, cmp, &value, 0, SHMEMX_ALL, NULL);           \
  }                                                                                                                   \
  ACLSHMEM_INLINE void aclshmem_##NAME##_wait_until_all(T* ivars, size_t nelems, const int* status, int cmp, T value) \
      SHMEM_NOEXCEPT {                                                                                                \
    aclshmemi_wait("aclshmem_" #NAME "_wait_until_all", TYPE, ivars, nelems, status, cmp, &value, 0, SHMEMX_ALL,      \
                   NULL);                                                                                             \
  }                                                                                                                   \
  ACLSHMEM_INLINE void aclshmem_##NAME##_wait_until_all_vector(T* ivars, size_t nelems, const int* status, int cmp,   \
                                                               const T* values) SHMEM_NOEXCEPT {                      \
    aclshmemi_wait("aclshmem_" #NAME "_wait_until_all_vector", TYPE, ivars, nelems, status, cmp, values, 1,           \
                   SHMEMX_ALL, NULL);                                                                                 \
  }
ACLSHMEM_WAIT_TYPES(ACLSHMEMI_WAIT)
#undef ACLSHMEMI_WAIT

#define ACLSHMEMI_WAIT(NAME, T, TYPE, SUFFIX, PARAMETER, VALUES, EACH)                                               \
  ACLSHMEM_INLINE void aclshmem_##NAME##_wait_until_any##SUFFIX(T* ivars, size_t nelems, const int* status, int cmp, \
                                                                PARAMETER, size_t* result) SHMEM_NOEXCEPT {          \
    *result = aclshmemi_wait("aclshmem_" #NAME "_wait_until_any" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES,  \
                             EACH, SHMEMX_ANY, NULL);                                                                \
  }                                                                                                                  \
  ACLSHMEM_INLINE void aclshmem_##NAME##_wait_until_some##SUFFIX(                                                    \
      T* ivars, size_t nelems, size_t* indices, const int* status, int cmp, PARAMETER, size_t* result)               \
      SHMEM_NOEXCEPT {                                                                                               \
    *result = aclshmemi_wait("aclshmem_" #NAME "_wait_until_some" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES, \
                             EACH, SHMEMX_SOME, indices);                                                            \
  }                                                                                                                  \
  ACLSHMEM_INLINE void aclshmem_##NAME##_test_all##SUFFIX(T* ivars, size_t nelems, const int* status, int cmp,       \
                                                          PARAMETER, int* result) SHMEM_NOEXCEPT {                   \
    *result = (int)aclshmemi_test("aclshmem_" #NAME "_test_all" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES,   \
                                  EACH, SHMEMX_ALL, NULL);                                                           \
  }                                                                                                                  \
  ACLSHMEM_INLINE void aclshmem_##NAME##_test_any##SUFFIX(T* ivars, size_t nelems, const int* status, int cmp,       \
                                                          PARAMETER, size_t* result) SHMEM_NOEXCEPT {                \
    *result = aclshmemi_test("aclshmem_" #NAME "_test_any" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES, EACH,  \
                             SHMEMX_ANY, NULL);                                                                      \
  }                                                                                                                  \
  ACLSHMEM_INLINE void aclshmem_##NAME##_test_some##SUFFIX(T* ivars, size_t nelems, size_t* indices,                 \
                                                           const int* status, int cmp, PARAMETER, size_t* result)    \
      SHMEM_NOEXCEPT {                                                                                               \
    *result = aclshmemi_test("aclshmem_" #NAME "_test_some" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES, EACH, \
                             SHMEMX_SOME, indices);                                                                  \
  }
#define ACLSHMEMI_WAITS(NAME, T, TYPE)                                                                               \
  ACLSHMEM_INLINE void aclshmem_##NAME##_test(T* ivar, int cmp, T value, int* result) SHMEM_NOEXCEPT {               \
    *result = (int)aclshmemi_test("aclshmem_" #NAME "_test", TYPE, ivar, 1, NULL, cmp, &value, 0, SHMEMX_ALL, NULL); \
  }                                                                                                                  \
  ACLSHMEMI_WAIT(NAME, T, TYPE, , T value, &value, 0)                                                                \
  ACLSHMEMI_WAIT(NAME, T, TYPE, _vector, const T* values, values, 1)
ACLSHMEM_WAIT_TYPES(ACLSHMEMI_WAITS)
#undef ACLSHMEMI_WAITS
#undef ACLSHMEMI_WAIT

/* NOLINTEND(modernize-use-nullptr) */
#endif
