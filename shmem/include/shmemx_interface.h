/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What interfaces with other names are built on (aclshmem.h is one). The calls do what those of shmem.h do, but
 * elements have a size in place of a type, and messages name `call`, which is what the user wrote. `call` is a constant
 * that lives as long as the program.
 *
 * On a core of a kernel they are the core's. On the host those without a stream begin when the work is done that was
 * given to the stream which the library has, as if they had been given to it, too.
 */
#ifndef SHMEM_SHMEMX_INTERFACE_H
#define SHMEM_SHMEMX_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"
#include "shmemx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for the work of the library's own stream, if it has any; errors are left to shmemx_stream_synchronize. Does
 * nothing on a core, and where the library does not run. */
SHMEM_API void shmemx_await_default_stream(void) SHMEM_NOEXCEPT;

/* ---- Copies ---- */

/* shmem_put and shmem_get of `nelems` elements of `size` bytes. */
SHMEM_API void shmemx_put_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size,
                                   int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_elements(const char* call, void* dest, const void* source, size_t nelems, size_t size,
                                   int pe) SHMEM_NOEXCEPT;

/* shmem_ibput and shmem_ibget: `nblocks` blocks of `bsize` elements of 1, 2, 4, 8 or 16 bytes. Their beginnings are
 * `dst` elements apart at the destination and `sst` at the source, neither of which is less than bsize. */
typedef struct shmemx_blocks_t {
  ptrdiff_t dst;
  ptrdiff_t sst;
  size_t bsize;
  size_t nblocks;
  size_t size;
} shmemx_blocks_t;
SHMEM_API void shmemx_put_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                                 int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_blocks(const char* call, void* dest, const void* source, const shmemx_blocks_t* blocks,
                                 int pe) SHMEM_NOEXCEPT;

/* shmem_p and shmem_g of 1, 2, 4 or 8 bytes, from *value and to *value: stored and loaded whole. */
SHMEM_API void shmemx_put_one(const char* call, void* dest, const void* value, size_t size, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_get_one(const char* call, void* value, const void* source, size_t size, int pe) SHMEM_NOEXCEPT;

/* ---- Signals of 32 bits ---- */

/* shmemx_signal32_op: what was put before it is visible to who sees the signal. And shmemx_signal32_wait_until. */
SHMEM_API void shmemx_signal32(const char* call, int32_t* sig_addr, int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT;
SHMEM_API int32_t shmemx_await_signal32(const char* call, int32_t* sig_addr, int cmp, int32_t cmp_value) SHMEM_NOEXCEPT;

/* ---- What there is not here ---- */

/* For calls that stand for what is not here: an error message that names the call, once for each on each PE,
 * and always -ENOTSUP. */
SHMEM_API int shmemx_not_supported(const char* call) SHMEM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
