/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: messages, and how long parts of kernels take. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_LOG_H
#define SHMEM_ACLSHMEM_LOG_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "aclshmem_types.h"

/* ---- Messages ---- */

/* Each message of the library goes to `logger`, or with NULL to standard error. */
ACLSHMEM_INLINE int32_t aclshmemx_set_extern_logger(void (*logger)(int level, const char* text)) SHMEM_NOEXCEPT {
  shmemx_set_logger(logger);
  return ACLSHMEM_SUCCESS;
}
/* 0 debug, 1 info, 2 warn, 3 error, 4 fatal. */
ACLSHMEM_INLINE int32_t aclshmemx_set_log_level(int level) SHMEM_NOEXCEPT {
  return aclshmemi_code(shmemx_set_log_level(level));
}

/* ---- How long parts of kernels take ----
 *
 * SHMEM_CYCLE_PROF_PE names the PE whose cores measure. A frame is the part of a kernel between SHMEMI_PROF_START and
 * SHMEMI_PROF_END with its number, 0 to ACLSHMEM_CYCLE_PROF_FRAME_CNT - 1, on the first ACLSHMEM_CYCLE_PROF_MAX_BLOCK
 * cores. A cycle is a nanosecond here. */
#define ACLSHMEM_CYCLE_PROF_MAX_BLOCK SHMEMX_PROF_CORES
#define ACLSHMEM_CYCLE_PROF_FRAME_CNT SHMEMX_PROF_FRAMES
typedef shmemx_prof_core_t aclshmem_prof_block_t;
typedef shmemx_prof_t aclshmem_prof_pe_t;
#define SHMEMI_PROF_START(frame) shmemx_prof_start(frame)
#define SHMEMI_PROF_END(frame) shmemx_prof_end(frame)

/* *out, if `out` is not NULL: the measurements, or NULL on other PEs; owned by the library. Call it while no kernel
 * runs. `verbose`: prints them to standard output. */
ACLSHMEM_INLINE void aclshmemx_get_prof(aclshmem_prof_pe_t** out, bool verbose) SHMEM_NOEXCEPT {
  if (out != NULL) {
    *out = shmemx_prof();
  }
  if (verbose) {
    shmemx_prof_print();
  }
}
ACLSHMEM_INLINE void aclshmemx_show_prof(void) SHMEM_NOEXCEPT {
  aclshmemx_get_prof(NULL, true);
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
