/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libshmem has beyond OpenSHMEM. The conventions are those of shmem.h; calls that give an int give 0 or a negative
 * errno, and shmemx_error_text() then says what went wrong.
 */
#ifndef SHMEM_SHMEMX_H
#define SHMEM_SHMEMX_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text of the calling thread's last failed call, or "". Valid until its next failed call. */
SHMEM_API const char* shmemx_error_text(void) SHMEM_NOEXCEPT;

/* ---- Teams and their barriers ---- */

/* Collective over the team: shmem_quiet, then everybody has come. */
SHMEM_API void shmemx_team_barrier(shmem_team_t team) SHMEM_NOEXCEPT;
/* As shmem_team_split_strided and the like without configurations. */
SHMEM_API int shmemx_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                                        shmem_team_t* new_team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_team_split_2d(shmem_team_t parent_team, int xrange, shmem_team_t* xaxis_team,
                                   shmem_team_t* yaxis_team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_team_get_config(shmem_team_t team, shmem_team_config_t* config) SHMEM_NOEXCEPT;

/*
 * Collective over the team: synchronise by `algorithm` ("gba", "npu_v3", or "auto": gba if it can be had) from now on.
 * Errors: -EINVAL no such team or algorithm; -ENODEV "gba" cannot be had, the same on all members.
 */
SHMEM_API int shmemx_team_set_barrier(shmem_team_t team, const char* algorithm) SHMEM_NOEXCEPT;

/* How the team synchronises and how often it has, seen from this PE. */
typedef struct shmemx_team_barrier_stats_t {
  char algorithm[32];   /* in use now */
  char reason[256];     /* why it is not the GBA, or "" */
  uint64_t by_device;   /* barriers that the GBA released */
  uint64_t by_software; /* barriers done in software, those finished after a loss of the device included */
} shmemx_team_barrier_stats_t;
/* Errors: -EINVAL no such team. */
SHMEM_API int shmemx_team_barrier_stats(shmem_team_t team, shmemx_team_barrier_stats_t* stats) SHMEM_NOEXCEPT;

/* ---- 32-bit signals, as Ascend SHMEM has them ---- */
SHMEM_API void shmemx_signal32_set(int32_t* sig_addr, int32_t signal, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_signal32_add(int32_t* sig_addr, int32_t signal, int pe) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_signal32_fetch(const int32_t* sig_addr) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_signal32_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && !defined(SHMEM_NO_OVERLOADS)
#include "shmem_overloads.h"
#endif

#endif
