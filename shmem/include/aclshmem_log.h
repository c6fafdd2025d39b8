/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: messages. Included by aclshmem.h.
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

/* NOLINTEND(modernize-use-nullptr) */
#endif
