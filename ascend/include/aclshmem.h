/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host calls of Ascend SHMEM on top of shmem.h and shmemx.h, so that a host program written for that library
 * compiles; in C++ also what its kernels call (aclshmem_device.h). Adds names of that library only, nearly all of them
 * aclshmem* and ACLSHMEM*. All are inline: there is nothing to link but libshmem.
 *
 * A name for host and kernels is one call, which finds out whether the thread is a core of a kernel. If Ascend SHMEM
 * has two forms of a name, C has the host's, and C++ has both.
 *
 * A vector core of the NPU is a thread here, a stream is a thread that works off a queue, and memory is of one kind:
 * host side and device side are the same heap. Calls with an int result return ACLSHMEM_SUCCESS or one of the codes
 * below; shmemx_error_text() then describes the error. Collective calls, thread safety and ownership: as the calls of
 * shmem.h and shmemx.h of the same names.
 */
#ifndef SHMEM_ACLSHMEM_H
#define SHMEM_ACLSHMEM_H

#include "aclshmem_host.h" /* IWYU pragma: export */

#ifdef __cplusplus
#include "aclshmem_device.h" /* IWYU pragma: export */
#endif

#endif
