/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that other OpenSHMEM libraries have and the specification does not, for programs that use them. Included by
 * shmem.h; shmemx_compat.h has those that begin with shmemx_. Also the macros that tell this library from others.
 */
#ifndef SHMEM_SHMEM_COMPAT_H
#define SHMEM_SHMEM_COMPAT_H

#include "shmem_atomic.h"
#include "shmem_context.h"
#include "shmem_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of this library alone; LIBSHMEM_VERSION is 100 for 0.1.0, and 10203 for 1.2.3. */
#define LIBSHMEM_MAJOR_VERSION 0
#define LIBSHMEM_MINOR_VERSION 1
#define LIBSHMEM_PATCH_VERSION 0
#define LIBSHMEM_VERSION (LIBSHMEM_MAJOR_VERSION * 10000 + LIBSHMEM_MINOR_VERSION * 100 + LIBSHMEM_PATCH_VERSION)

/* Open MPI's: the version of the specification, 10600 for 1.6. */
#define OSHMEM_SPEC_VERSION (SHMEM_MAJOR_VERSION * 10000 + SHMEM_MINOR_VERSION * 100)

/* Cache control, which OpenSHMEM 1.3 deprecated and 1.5 removed: memory is coherent, and these do nothing. They may be
 * called before shmem_init. */
SHMEM_DECLARE(void, set_cache_inv, (void))
SHMEM_DECLARE(void, set_cache_line_inv, (void* dest))
SHMEM_DECLARE(void, clear_cache_inv, (void))
SHMEM_DECLARE(void, clear_cache_line_inv, (void* dest))
SHMEM_DECLARE(void, udcflush, (void))
SHMEM_DECLARE(void, udcflush_line, (void* dest))

/* Atomics on bits for the signed types whose names the specification does not have; see shmem_atomic.h. */
SHMEM_SIGNED_BITWISE_AMO_TYPES(SHMEM_DECLARE_BITWISE_AMO)
#undef SHMEM_DECLARE_BITWISE_AMO

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
