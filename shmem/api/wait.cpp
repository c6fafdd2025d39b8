// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.11: waiting for, and testing, words of this PE, by the calls that kernels have.
#include "shmem/api/entry.hpp"
#include "shmem_device.h"

#define SHMEM_DEFINE_ONE(NAME, TYPE)                                                                 \
  SHMEM_ROUTINE(void, NAME##_wait_until, (TYPE * ivar, int cmp, TYPE cmp_value)) try {               \
    shmemi_wait("shmem_" #NAME "_wait_until", ivar, 1, nullptr, cmp, &cmp_value, false, SHMEMX_ALL); \
  }                                                                                                  \
  SHMEM_CATCH(void)                                                                                  \
  SHMEM_ROUTINE(int, NAME##_test, (TYPE * ivar, int cmp, TYPE cmp_value)) try {                      \
    return static_cast<int>(                                                                         \
        shmemi_test("shmem_" #NAME "_test", ivar, 1, nullptr, cmp, &cmp_value, false, SHMEMX_ALL));  \
  }                                                                                                  \
  SHMEM_CATCH(int)
SHMEM_AMO_TYPES(SHMEM_DEFINE_ONE)
SHMEM_OLD_WAIT_TYPES(SHMEM_DEFINE_ONE)

// One family: one value for all (VALUE is &cmp_value) or one for each (cmp_values).
#define SHMEM_DEFINE_SEVERAL(NAME, TYPE, SUFFIX, PARAMETER, VALUE, EACH)                                               \
  SHMEM_ROUTINE(void, NAME##_wait_until_all##SUFFIX,                                                                   \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, PARAMETER))                                  \
  try {                                                                                                                \
    shmemi_wait("shmem_" #NAME "_wait_until_all" #SUFFIX, ivars, nelems, status, cmp, VALUE, EACH, SHMEMX_ALL);        \
  }                                                                                                                    \
  SHMEM_CATCH(void)                                                                                                    \
  SHMEM_ROUTINE(size_t, NAME##_wait_until_any##SUFFIX,                                                                 \
                (TYPE * ivars, size_t nelems, const int* status, int cmp, PARAMETER))                                  \
  try {                                                                                                                \
    return shmemi_wait("shmem_" #NAME "_wait_until_any" #SUFFIX, ivars, nelems, status, cmp, VALUE, EACH, SHMEMX_ANY); \
  }                                                                                                                    \
  SHMEM_CATCH(size_t)                                                                                                  \
  SHMEM_ROUTINE(size_t, NAME##_wait_until_some##SUFFIX,                                                                \
                (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, PARAMETER))                \
  try {                                                                                                                \
    return shmemi_wait("shmem_" #NAME "_wait_until_some" #SUFFIX, ivars, nelems, status, cmp, VALUE, EACH,             \
                       SHMEMX_SOME, indices);                                                                          \
  }                                                                                                                    \
  SHMEM_CATCH(size_t)                                                                                                  \
  SHMEM_ROUTINE(int, NAME##_test_all##SUFFIX, (TYPE * ivars, size_t nelems, const int* status, int cmp, PARAMETER))    \
  try {                                                                                                                \
    return static_cast<int>(                                                                                           \
        shmemi_test("shmem_" #NAME "_test_all" #SUFFIX, ivars, nelems, status, cmp, VALUE, EACH, SHMEMX_ALL));         \
  }                                                                                                                    \
  SHMEM_CATCH(int)                                                                                                     \
  SHMEM_ROUTINE(size_t, NAME##_test_any##SUFFIX, (TYPE * ivars, size_t nelems, const int* status, int cmp, PARAMETER)) \
  try {                                                                                                                \
    return shmemi_test("shmem_" #NAME "_test_any" #SUFFIX, ivars, nelems, status, cmp, VALUE, EACH, SHMEMX_ANY);       \
  }                                                                                                                    \
  SHMEM_CATCH(size_t)                                                                                                  \
  SHMEM_ROUTINE(size_t, NAME##_test_some##SUFFIX,                                                                      \
                (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, PARAMETER))                \
  try {                                                                                                                \
    return shmemi_test("shmem_" #NAME "_test_some" #SUFFIX, ivars, nelems, status, cmp, VALUE, EACH, SHMEMX_SOME,      \
                       indices);                                                                                       \
  }                                                                                                                    \
  SHMEM_CATCH(size_t)
#define SHMEM_DEFINE_FAMILY(NAME, TYPE)                                 \
  SHMEM_DEFINE_SEVERAL(NAME, TYPE, , TYPE cmp_value, &cmp_value, false) \
  SHMEM_DEFINE_SEVERAL(NAME, TYPE, _vector, const TYPE* cmp_values, cmp_values, true)
SHMEM_AMO_TYPES(SHMEM_DEFINE_FAMILY)
SHMEM_OLD_WAIT_TYPES(SHMEM_DEFINE_FAMILY)

// Deprecated since 1.4.
#define SHMEM_DEFINE_WAIT(NAME, TYPE)                                                                 \
  SHMEM_ROUTINE(void, NAME, (TYPE * ivar, TYPE cmp_value)) try {                                      \
    shmemi_wait<TYPE>("shmem_" #NAME, ivar, 1, nullptr, SHMEM_CMP_NE, &cmp_value, false, SHMEMX_ALL); \
  }                                                                                                   \
  SHMEM_CATCH(void)
SHMEM_DEFINE_WAIT(wait, long)
SHMEM_DEFINE_WAIT(short_wait, short)
SHMEM_DEFINE_WAIT(int_wait, int)
SHMEM_DEFINE_WAIT(long_wait, long)
SHMEM_DEFINE_WAIT(longlong_wait, long long)

SHMEM_ROUTINE(void, wait_until, (long* ivar, int cmp, long cmp_value)) try {
  shmemi_wait("shmem_wait_until", ivar, 1, nullptr, cmp, &cmp_value, false, SHMEMX_ALL);
}
SHMEM_CATCH(void)
