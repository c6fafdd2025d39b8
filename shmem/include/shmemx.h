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

/* A team as this PE sees it: who is in it, how it synchronises and how often it has. */
typedef struct shmemx_team_info_t {
  int n_pes; /* members */
  int my_pe; /* this PE's number in it */
  int start; /* the members are PEs start, start + stride, ... of the world */
  int stride;
  char algorithm[32];   /* of its barriers, now */
  char reason[256];     /* why that is not the GBA, or "" */
  uint64_t by_device;   /* barriers that the GBA released */
  uint64_t by_software; /* barriers done in software, those finished after a loss of the device included */
} shmemx_team_info_t;
/* Errors: -EINVAL no such team, or info is NULL. */
SHMEM_API int shmemx_team_info(shmem_team_t team, shmemx_team_info_t* info) SHMEM_NOEXCEPT;

/* ---- Kernels on the vector cores of this PE, which are threads of it ---- */

typedef struct shmemx_core_t shmemx_core_t; /* one core, for the time of a kernel; owned by the library */
typedef void (*shmemx_kernel_t)(shmemx_core_t* core, void* argument);

/*
 * Runs `kernel` on `cores` cores at once, the calling thread being core 0, and returns when all have ended. The threads
 * are kept for the next launch with as many cores. One launch at a time. In a kernel, RMA, signals and the calls below
 * may be made. Errors: -EINVAL cores < 1 or no kernel; -EAGAIN threads cannot be made; what a wait in the kernel failed
 * with.
 */
SHMEM_API int shmemx_launch(int cores, shmemx_kernel_t kernel, void* argument) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_index(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_count(const shmemx_core_t* core) SHMEM_NOEXCEPT;
/* As the host calls of these names, for cores: they read what the host has written down for them, and nothing else. -1
 * for a team that this PE is not in; NULL for an address outside the symmetric heap, or no such PE. */
SHMEM_API int shmemx_core_my_pe(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_n_pes(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_team_my_pe(const shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_team_n_pes(const shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_core_team_translate_pe(const shmemx_core_t* core, shmem_team_t src_team, int src_pe,
                                            shmem_team_t dest_team) SHMEM_NOEXCEPT;
SHMEM_API void* shmemx_core_ptr(const shmemx_core_t* core, const void* dest, int pe) SHMEM_NOEXCEPT;
/* Meets the other cores of this PE. Non-zero: a core has failed or the job has been ended; the kernel should return. */
SHMEM_API int shmemx_core_sync(shmemx_core_t* core) SHMEM_NOEXCEPT;
/* Called by all cores of all PEs of the team: shmem_quiet, then everybody has come. Non-zero as for shmemx_core_sync.
 */
SHMEM_API int shmemx_core_barrier(shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;

/* ---- 32-bit signals, as Ascend SHMEM has them ---- */
SHMEM_API void shmemx_signal32_set(int32_t* sig_addr, int32_t signal, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_signal32_add(int32_t* sig_addr, int32_t signal, int pe) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_signal32_fetch(const int32_t* sig_addr) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_signal32_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) SHMEM_NOEXCEPT;

/* ---- kv_shuffle: copies blocks of K and V caches between pairs of PEs ---- */

/* A cache: [blocks][kv_heads][page_size][head_dim] in elements of element_size (1, 2 or 4) bytes. */
typedef struct shmemx_kv_shape_t {
  int64_t blocks;
  int64_t kv_heads;
  int64_t page_size;
  int64_t head_dim;
  int64_t element_size;
} shmemx_kv_shape_t;

typedef struct shmemx_kv_shuffle shmemx_kv_shuffle_t;

/*
 * Collective over the world team, and so is destroy; both take and give back symmetric memory. `cores` is even: half of
 * them copy K, half V; the calling thread is one of them, the others are threads that sleep between calls. The operator
 * is the caller's to destroy and is used by one thread at a time. NULL may be destroyed, on all PEs or on none.
 * Errors, the same on all PEs: -EINVAL cores, or not the same on all; -ENOMEM; -EAGAIN no more threads.
 */
SHMEM_API int shmemx_kv_shuffle_create(int cores, shmemx_kv_shuffle_t** out) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_kv_shuffle_destroy(shmemx_kv_shuffle_t* op) SHMEM_NOEXCEPT;

/*
 * Collective over the world team, without being a barrier: it returns when this PE's blocks have been sent or received,
 * at once on a PE whose pair is idle. k_cache and v_cache are symmetric and of `shape`.
 *
 * global_shuffle_table, the same on all PEs, is int64_t[2 * n_pes]: row p is {the PE that p is paired with, operation},
 * where 0 sends and anything else receives. Pairs name each other, at most one of a pair sends, and a PE may be paired
 * with itself to be idle. A sender copies its block src_block_table[i] to its partner's block dst_block_table[i], for i
 * in 0..block_count-1; on other PEs these three are ignored and may be NULL and 0.
 *
 * Everything is checked before anything moves. After an error the destination blocks are undefined, all others are
 * untouched, and the operator can be used again. Errors: -EINVAL tables, shape or caches, as the text says;
 * -ECONNABORTED the partner's call failed; -EPROTO the partner has made another number of calls; -ETIMEDOUT (see
 * SHMEM_BARRIER_TIMEOUT); -EOWNERDEAD the partner has died; -ECANCELED the job was ended; -ENOMEM.
 */
SHMEM_API int shmemx_kv_shuffle_run(shmemx_kv_shuffle_t* op, void* k_cache, void* v_cache,
                                    const shmemx_kv_shape_t* shape, const int64_t* global_shuffle_table,
                                    const int64_t* src_block_table, const int64_t* dst_block_table,
                                    int64_t block_count) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && !defined(SHMEM_NO_OVERLOADS)
#include "shmem_overloads.h"
#endif

#endif
