/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host calls of Ascend SHMEM on top of shmem.h and shmemx.h, so that a host program written for that library
 * compiles; in C++ also what its kernels call (aclshmem_device.h). Adds names of that library only, nearly all of them
 * aclshmem* and ACLSHMEM*. All are inline: there is nothing to link but libshmem.
 *
 * What host and kernels call by one name is one call, which asks the thread whether it is a core of a kernel. Where
 * that library has two forms of a name, C has the host's, and C++ has both.
 *
 * A vector core of the NPU is a thread here, a stream is a thread that works off a queue, and memory is of one kind:
 * host side and device side are the same heap. Calls that give an int give ACLSHMEM_SUCCESS or one of the codes below;
 * shmemx_error_text() then says what went wrong. Collective calls, thread safety and ownership: as the calls of shmem.h
 * and shmemx.h of the same names.
 */
#ifndef SHMEM_ACLSHMEM_H
#define SHMEM_ACLSHMEM_H

#include "aclshmem_init.h"   /* IWYU pragma: export */
#include "aclshmem_log.h"    /* IWYU pragma: export */
#include "aclshmem_memory.h" /* IWYU pragma: export */
#include "aclshmem_rma.h"    /* IWYU pragma: export */
#include "aclshmem_signal.h" /* IWYU pragma: export */
#include "aclshmem_sync.h"   /* IWYU pragma: export */
#include "aclshmem_types.h"  /* IWYU pragma: export */
#include "aclshmem_wait.h"   /* IWYU pragma: export */

#ifdef __cplusplus
#include "aclshmem_device.h" /* IWYU pragma: export */
#endif

#endif
