/* SPDX-License-Identifier: Apache-2.0 */
/* For host programs that include this header from inside Ascend SHMEM. */
#ifndef SHMEM_ASCEND_SHMEMI_HOST_COMMON_H
#define SHMEM_ASCEND_SHMEMI_HOST_COMMON_H

#include "shmem.h" /* IWYU pragma: export */

/* A barrier of the hosts, after the work of the stream NULL. */
ACLSHMEM_INLINE int aclshmemi_control_barrier_all(void) SHMEM_NOEXCEPT {
  aclshmem_barrier_all();
  return ACLSHMEM_SUCCESS;
}

#endif
