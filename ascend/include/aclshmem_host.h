/* SPDX-License-Identifier: Apache-2.0 */
/* The part of aclshmem.h that hosts call. */
#ifndef SHMEM_ACLSHMEM_HOST_H
#define SHMEM_ACLSHMEM_HOST_H

#include "aclshmem_init.h"   /* IWYU pragma: export */
#include "aclshmem_log.h"    /* IWYU pragma: export */
#include "aclshmem_memory.h" /* IWYU pragma: export */
#include "aclshmem_rma.h"    /* IWYU pragma: export */
#include "aclshmem_signal.h" /* IWYU pragma: export */
#include "aclshmem_sync.h"   /* IWYU pragma: export */
#include "aclshmem_types.h"  /* IWYU pragma: export */
#include "aclshmem_wait.h"   /* IWYU pragma: export */

#endif
