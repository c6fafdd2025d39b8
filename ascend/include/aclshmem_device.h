/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's calls for kernels, on top of shmem_device.h, whose conventions apply: synchronisation here, data
 * movement in the included headers. C++ only; included by aclshmem.h, which has the names that host and kernels share
 * (aclshmem_barrier, aclshmem_my_pe, ...): on a core of a kernel they do what Ascend's device calls of these names do.
 *
 * A kernel is a function for shmemx_launch. A pointer to global memory is a plain pointer; __gm__ may be defined as
 * nothing.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_H
#define SHMEM_ACLSHMEM_DEVICE_H

#include "aclshmem_device_atomic.h"  /* IWYU pragma: export */
#include "aclshmem_device_engines.h" /* IWYU pragma: export */
#include "aclshmem_device_mte.h"     /* IWYU pragma: export */
#include "aclshmem_device_rma.h"     /* IWYU pragma: export */
#include "aclshmem_host.h"           /* IWYU pragma: export */
#include "aclshmem_state.h"          /* IWYU pragma: export */
#include "shmem_device.h"

#ifndef __cplusplus
#error "aclshmem_device.h is for C++"
#endif

/* The PE of the world that is `pe` of the team; -1 if there is none. */
inline int aclshmem_team_pe_mapping(aclshmem_team_t team, int pe) noexcept {
  return aclshmem_team_translate_pe(team, pe, ACLSHMEM_TEAM_WORLD);
}

/* A core's own word: see shmemx_set_ffts_config. */
inline void util_set_ffts_config(uint64_t config) noexcept {
  shmemx_set_ffts_config(config);
}

/* A team of -1 does nothing. */
inline void aclshmemx_barrier_vec(aclshmem_team_t team) noexcept {
  if (team != ACLSHMEM_TEAM_INVALID) {
    shmemx_barrier_vec(shmemx_team_by_number(team));
  }
}
inline void aclshmemx_barrier_all_vec() noexcept {
  shmemx_barrier_all_vec();
}
/* The same without completing copies; those of a relay are no others here. */
inline void aclshmemx_sync_vec(aclshmem_team_t team) noexcept {
  if (team != ACLSHMEM_TEAM_INVALID) {
    shmemx_core_team_sync(shmemx_current_core(), shmemx_team_by_number(team));
  }
}
inline void aclshmemx_sync_vec_all() noexcept {
  aclshmemx_sync_vec(ACLSHMEM_TEAM_WORLD);
}
inline void aclshmemx_sync_vec_relay(aclshmem_team_t team) noexcept {
  aclshmemx_sync_vec(team);
}
inline void aclshmemx_sync_all_vec_relay() noexcept {
  aclshmemx_sync_vec_all();
}
inline void aclshmemx_partial_barrier(aclshmem_team_t team, uint32_t* pes, uint32_t count) noexcept {
  shmemx_partial_barrier(shmemx_team_by_number(team), pes, count);
}
inline void aclshmemx_partial_barrier_vec(aclshmem_team_t team, uint32_t* pes, uint32_t count) noexcept {
  shmemx_partial_barrier_vec(shmemx_team_by_number(team), pes, count);
}

inline void aclshmem_quiet() noexcept {
  shmem_quiet();
}
inline void aclshmem_fence() noexcept {
  shmem_fence();
}

/* Signals have 32 bits in that library. */
inline void aclshmemx_signal_op(int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept {
  shmemx_signal32("aclshmemx_signal_op", sig_addr, signal, sig_op, pe);
}

/* aclshmem_float_wait_until_any and so on, as kernels have them: see aclshmem_wait.h. */
#define ACLSHMEMI_WAIT(NAME, T, TYPE, SUFFIX, PARAMETER, VALUES, EACH)                                                 \
  inline size_t aclshmem_##NAME##_wait_until_any##SUFFIX(T* ivars, size_t nelems, const int* status, int cmp,          \
                                                         PARAMETER) noexcept {                                         \
    return aclshmemi_wait("aclshmem_" #NAME "_wait_until_any" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES, EACH, \
                          SHMEMX_ANY, nullptr);                                                                        \
  }                                                                                                                    \
  inline size_t aclshmem_##NAME##_wait_until_some##SUFFIX(T* ivars, size_t nelems, size_t* indices, const int* status, \
                                                          int cmp, PARAMETER) noexcept {                               \
    return aclshmemi_wait("aclshmem_" #NAME "_wait_until_some" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES,      \
                          EACH, SHMEMX_SOME, indices);                                                                 \
  }                                                                                                                    \
  inline int aclshmem_##NAME##_test_all##SUFFIX(T* ivars, size_t nelems, const int* status, int cmp,                   \
                                                PARAMETER) noexcept {                                                  \
    return static_cast<int>(aclshmemi_test("aclshmem_" #NAME "_test_all" #SUFFIX, TYPE, ivars, nelems, status, cmp,    \
                                           VALUES, EACH, SHMEMX_ALL, nullptr));                                        \
  }                                                                                                                    \
  inline size_t aclshmem_##NAME##_test_any##SUFFIX(T* ivars, size_t nelems, const int* status, int cmp,                \
                                                   PARAMETER) noexcept {                                               \
    return aclshmemi_test("aclshmem_" #NAME "_test_any" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES, EACH,       \
                          SHMEMX_ANY, nullptr);                                                                        \
  }                                                                                                                    \
  inline size_t aclshmem_##NAME##_test_some##SUFFIX(T* ivars, size_t nelems, size_t* indices, const int* status,       \
                                                    int cmp, PARAMETER) noexcept {                                     \
    return aclshmemi_test("aclshmem_" #NAME "_test_some" #SUFFIX, TYPE, ivars, nelems, status, cmp, VALUES, EACH,      \
                          SHMEMX_SOME, indices);                                                                       \
  }
#define ACLSHMEMI_WAITS(NAME, T, TYPE)                                                                           \
  inline int aclshmem_##NAME##_test(T* ivar, int cmp, T value) noexcept {                                        \
    return static_cast<int>(                                                                                     \
        aclshmemi_test("aclshmem_" #NAME "_test", TYPE, ivar, 1, nullptr, cmp, &value, 0, SHMEMX_ALL, nullptr)); \
  }                                                                                                              \
  ACLSHMEMI_WAIT(NAME, T, TYPE, , T value, &value, 0)                                                            \
  ACLSHMEMI_WAIT(NAME, T, TYPE, _vector, const T* values, values, 1)
ACLSHMEM_WAIT_TYPES(ACLSHMEMI_WAITS)
#undef ACLSHMEMI_WAITS
#undef ACLSHMEMI_WAIT

#endif
