/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ only: the forms that Ascend SHMEM has under OpenSHMEM's names. Included by shmemx.h, unless SHMEM_NO_OVERLOADS is
 * defined: with these in sight `auto p = &shmem_barrier` is ambiguous.
 */
#ifndef SHMEM_SHMEM_OVERLOADS_H
#define SHMEM_SHMEM_OVERLOADS_H

#include "shmem.h"
#include "shmemx.h"

#ifndef __cplusplus
#error "shmem_overloads.h is for C++"
#endif

inline int shmem_sync(shmem_team_t team) noexcept {
  return shmem_team_sync(team);
}
inline void shmem_barrier(shmem_team_t team) noexcept {
  shmemx_team_barrier(team);
}
inline int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                                    shmem_team_t* new_team) noexcept {
  return shmemx_team_split_strided(parent, start, stride, size, new_team);
}
inline int shmem_team_split_2d(shmem_team_t parent, int x_range, shmem_team_t* x_team, shmem_team_t* y_team) noexcept {
  return shmemx_team_split_2d(parent, x_range, x_team, y_team);
}
inline int shmem_team_get_config(shmem_team_t team, shmem_team_config_t* config) noexcept {
  return shmemx_team_get_config(team, config);
}
inline void shmem_signal_set(int32_t* sig_addr, int32_t signal, int pe) noexcept {
  shmemx_signal32_set(sig_addr, signal, pe);
}
inline void shmem_signal_add(int32_t* sig_addr, int32_t signal, int pe) noexcept {
  shmemx_signal32_add(sig_addr, signal, pe);
}
inline int32_t shmem_signal_fetch(const int32_t* sig_addr) noexcept {
  return shmemx_signal32_fetch(sig_addr);
}
inline int32_t shmem_signal_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) noexcept {
  return shmemx_signal32_wait_until(sig_addr, cmp, cmp_value);
}

#endif
