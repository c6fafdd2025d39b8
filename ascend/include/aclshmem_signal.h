/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: signals. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_SIGNAL_H
#define SHMEM_ACLSHMEM_SIGNAL_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "aclshmem_types.h"

/* ---- Puts that end with a signal, and signals alone ----
 *
 * A signal is a word of 32 bits, symmetric and aligned. A PE that sees it sees the puts before it. sig_op:
 * ACLSHMEM_SIGNAL_SET or _ADD, which are atomic here. A call with wrong arguments ends the job with a message that
 * names it. Thread-safe. Order with the stream NULL: as in aclshmem_rma.h. */

ACLSHMEM_INLINE void aclshmemi_put_signal(const char* call, void* dst, const void* src, size_t nelems, size_t size,
                                          void* sig_addr, int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT {
  shmemx_put_elements(call, dst, src, nelems, size, pe);
  shmemx_signal32(call, (int32_t*)sig_addr, signal, sig_op, pe);
}

/* On the host the signal of typed elements is named by its first byte, on a core by the word: C++ has both. */
#define ACLSHMEMI_PUT_SIGNAL(NAME, T, WORD)                                                                           \
  ACLSHMEM_INLINE void aclshmem_##NAME##_put_signal(T* dst, const T* src, size_t nelems, WORD* sig_addr,              \
                                                    int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT {              \
    aclshmemi_put_signal("aclshmem_" #NAME "_put_signal", dst, src, nelems, sizeof(T), sig_addr, signal, sig_op, pe); \
  }                                                                                                                   \
  ACLSHMEM_INLINE void aclshmem_##NAME##_put_signal_nbi(T* dst, const T* src, size_t nelems, WORD* sig_addr,          \
                                                        int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT {          \
    aclshmemi_put_signal("aclshmem_" #NAME "_put_signal_nbi", dst, src, nelems, sizeof(T), sig_addr, signal, sig_op,  \
                         pe);                                                                                         \
  }
#define ACLSHMEMI_HOST_PUT_SIGNAL(NAME, T) ACLSHMEMI_PUT_SIGNAL(NAME, T, uint8_t)
ACLSHMEM_HOST_TYPES(ACLSHMEMI_HOST_PUT_SIGNAL)
#undef ACLSHMEMI_HOST_PUT_SIGNAL

#define ACLSHMEMI_PUT_SIGNAL_BITS(BITS, BYTES)                                                                       \
  ACLSHMEM_INLINE void aclshmem_put##BITS##_signal(void* dst, const void* src, size_t nelems, int32_t* sig_addr,     \
                                                   int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT {              \
    aclshmemi_put_signal("aclshmem_put" #BITS "_signal", dst, src, nelems, BYTES, sig_addr, signal, sig_op, pe);     \
  }                                                                                                                  \
  ACLSHMEM_INLINE void aclshmem_put##BITS##_signal_nbi(void* dst, const void* src, size_t nelems, int32_t* sig_addr, \
                                                       int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT {          \
    aclshmemi_put_signal("aclshmem_put" #BITS "_signal_nbi", dst, src, nelems, BYTES, sig_addr, signal, sig_op, pe); \
  }
SHMEM_SIZES(ACLSHMEMI_PUT_SIGNAL_BITS)
#undef ACLSHMEMI_PUT_SIGNAL_BITS

ACLSHMEM_INLINE void aclshmemx_putmem_signal(void* dst, const void* src, size_t bytes, void* sig_addr, int32_t signal,
                                             int sig_op, int pe) SHMEM_NOEXCEPT {
  aclshmemi_put_signal("aclshmemx_putmem_signal", dst, src, bytes, 1, sig_addr, signal, sig_op, pe);
}
ACLSHMEM_INLINE void aclshmemx_putmem_signal_nbi(void* dst, const void* src, size_t bytes, void* sig_addr,
                                                 int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT {
  aclshmemi_put_signal("aclshmemx_putmem_signal_nbi", dst, src, bytes, 1, sig_addr, signal, sig_op, pe);
}

/* The word may be that of another PE of this node (aclshmem_wait.h). On the host the original returns nothing; here it
 * returns the value that ended the wait, as on a core. */
ACLSHMEM_INLINE int32_t aclshmem_signal_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) SHMEM_NOEXCEPT {
  return shmemx_await_signal32("aclshmem_signal_wait_until", sig_addr, cmp, cmp_value);
}

/* In the order of the stream. The call that synchronises the stream reports a failed wait. */
ACLSHMEM_INLINE void aclshmemx_signal_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op, int pe,
                                                   aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_signal32_op_on_stream(sig_addr, signal, sig_op, pe, (shmemx_stream_t*)stream);
}
ACLSHMEM_INLINE void aclshmemx_signal_wait_until_on_stream(int32_t* sig_addr, int cmp, int32_t cmp_value,
                                                           aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_signal32_wait_until_on_stream(sig_addr, cmp, cmp_value, (shmemx_stream_t*)stream);
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
