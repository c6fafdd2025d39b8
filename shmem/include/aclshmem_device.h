/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's names of what kernels call to synchronise, on top of shmem_device.h, whose conventions hold. C++ only;
 * included by aclshmem.h. What host and kernels call by one name (aclshmem_barrier, aclshmem_my_pe, ...) is there: on a
 * core of a kernel it does what Ascend's device call of that name does.
 *
 * A kernel is a function for shmemx_launch. A pointer to global memory is a plain pointer; __gm__ may be defined as
 * nothing.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_H
#define SHMEM_ACLSHMEM_DEVICE_H

#include "aclshmem.h"
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
  if (team != ACLSHMEM_TEAM_INVALID) shmemx_barrier_vec(team);
}
inline void aclshmemx_barrier_all_vec() noexcept {
  shmemx_barrier_all_vec();
}
inline void aclshmemx_partial_barrier(aclshmem_team_t team, uint32_t* pes, uint32_t count) noexcept {
  shmemx_partial_barrier(team, pes, count);
}
inline void aclshmemx_partial_barrier_vec(aclshmem_team_t team, uint32_t* pes, uint32_t count) noexcept {
  shmemx_partial_barrier_vec(team, pes, count);
}

inline void aclshmem_quiet() noexcept {
  shmem_quiet();
}
inline void aclshmem_fence() noexcept {
  shmem_fence();
}

/* Signals have 32 bits in that library. */
inline void aclshmemx_signal_op(int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept {
  shmemx_signal32_op(sig_addr, signal, sig_op, pe);
}
inline int32_t aclshmem_signal_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) noexcept {
  return shmemx_signal32_wait_until(sig_addr, cmp, cmp_value);
}

/* aclshmem_float_wait_until and so on: see shmemx_wait_until in shmem_device.h. */
SHMEMI_WAIT_FAMILY(, aclshmem_float, float, float)
SHMEMI_WAIT_FAMILY(, aclshmem_int8, int8_t, int8_t)
SHMEMI_WAIT_FAMILY(, aclshmem_int16, int16_t, int16_t)
SHMEMI_WAIT_FAMILY(, aclshmem_int32, int32_t, int32_t)
SHMEMI_WAIT_FAMILY(, aclshmem_int64, int64_t, int64_t)
SHMEMI_WAIT_FAMILY(, aclshmem_uint8, uint8_t, uint8_t)
SHMEMI_WAIT_FAMILY(, aclshmem_uint16, uint16_t, uint16_t)
SHMEMI_WAIT_FAMILY(, aclshmem_uint32, uint32_t, uint32_t)
SHMEMI_WAIT_FAMILY(, aclshmem_uint64, uint64_t, uint64_t)
SHMEMI_WAIT_FAMILY(, aclshmem_char, char, char)

#endif
