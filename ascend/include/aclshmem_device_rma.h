/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM, what kernels add to the puts and gets of aclshmem_rma.h and the signals of aclshmem_signal.h: two more
 * types, blocks, and tensors. C++ only; included by aclshmem_device.h.
 *
 * A tensor is any object whose GetPhyAddr() gives the address of its elements (AscendC::GlobalTensor and LocalTensor,
 * of ascend/cann/kernel_operator.h or another). All memory is alike here: where that library has one form for
 * global memory and one for a core's own, this has one form.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_RMA_H
#define SHMEM_ACLSHMEM_DEVICE_RMA_H

#ifndef __cplusplus
#error "aclshmem_device_rma.h is for C++"
#endif

#include <type_traits>
#include <utility>

#include "aclshmem_half.h"
#include "aclshmem_rma.h"
#include "aclshmem_signal.h"

/* The types of the host, and numbers of 16 bits. */
#define ACLSHMEM_DEVICE_TYPES(X)   \
  X(half, aclshmem_half_t)         \
  X(bfloat16, aclshmem_bfloat16_t) \
  ACLSHMEM_HOST_TYPES(X)

ACLSHMEMI_RMA(half, aclshmem_half_t)
ACLSHMEMI_RMA(bfloat16, aclshmem_bfloat16_t)

/* `repeat` blocks of `length` elements, whose beginnings are src_ld elements apart at the source and dst_ld at the
 * destination; neither is less than `length`. */
struct non_contiguous_copy_param {
  uint32_t repeat;
  uint32_t length;
  uint32_t src_ld;
  uint32_t dst_ld;
};

/* In bytes, so that elements may have any size. A single block needs no stride. */
template <typename T>
shmemx_blocks_t aclshmemi_blocks(const non_contiguous_copy_param& params) noexcept {
  const uint32_t dst = params.repeat > 1 ? params.dst_ld : params.length;
  const uint32_t src = params.repeat > 1 ? params.src_ld : params.length;
  return {static_cast<ptrdiff_t>(dst * sizeof(T)), static_cast<ptrdiff_t>(src * sizeof(T)), params.length * sizeof(T),
          params.repeat, 1};
}
template <typename T>
void aclshmemi_put(const char* call, T* dst, const T* src, const non_contiguous_copy_param& params, int pe) noexcept {
  const shmemx_blocks_t blocks = aclshmemi_blocks<T>(params);
  shmemx_put_blocks(call, dst, src, &blocks, pe);
}
template <typename T>
void aclshmemi_get(const char* call, T* dst, const T* src, const non_contiguous_copy_param& params, int pe) noexcept {
  const shmemx_blocks_t blocks = aclshmemi_blocks<T>(params);
  shmemx_get_blocks(call, dst, src, &blocks, pe);
}

/* The element type of a tensor, from GetPhyAddr(). */
template <typename Tensor>
using aclshmemi_element = typename std::remove_cv<
    typename std::remove_pointer<decltype(std::declval<const Tensor&>().GetPhyAddr())>::type>::type;
/* Valid if both are tensors of T. */
template <typename T, typename D, typename S>
using aclshmemi_if_tensors = typename std::enable_if<std::is_same<aclshmemi_element<D>, T>::value &&
                                                     std::is_same<aclshmemi_element<S>, T>::value>::type;

#define ACLSHMEMI_DEVICE_RMA(NAME, T)                                                                  \
  inline void aclshmem_##NAME##_put_nbi(T* dst, const T* src, const non_contiguous_copy_param& params, \
                                        int pe) noexcept {                                             \
    aclshmemi_put("aclshmem_" #NAME "_put_nbi", dst, src, params, pe);                                 \
  }                                                                                                    \
  inline void aclshmem_##NAME##_get_nbi(T* dst, const T* src, const non_contiguous_copy_param& params, \
                                        int pe) noexcept {                                             \
    aclshmemi_get("aclshmem_" #NAME "_get_nbi", dst, src, params, pe);                                 \
  }                                                                                                    \
  template <typename D, typename S, typename = aclshmemi_if_tensors<T, D, S>, typename Amount>         \
  void aclshmem_##NAME##_put_nbi(const D& dst, const S& src, const Amount& amount, int pe) noexcept {  \
    aclshmem_##NAME##_put_nbi(dst.GetPhyAddr(), src.GetPhyAddr(), amount, pe);                         \
  }                                                                                                    \
  template <typename D, typename S, typename = aclshmemi_if_tensors<T, D, S>, typename Amount>         \
  void aclshmem_##NAME##_get_nbi(const D& dst, const S& src, const Amount& amount, int pe) noexcept {  \
    aclshmem_##NAME##_get_nbi(dst.GetPhyAddr(), src.GetPhyAddr(), amount, pe);                         \
  }
ACLSHMEM_DEVICE_TYPES(ACLSHMEMI_DEVICE_RMA)
#undef ACLSHMEMI_DEVICE_RMA

/* ---- With a signal: put_signal and put_signal_nbi of elements, blocks and tensors ---- */

#define ACLSHMEMI_DEVICE_PUT_SIGNAL(NAME, T) ACLSHMEMI_PUT_SIGNAL(NAME, T, int32_t)
ACLSHMEM_DEVICE_TYPES(ACLSHMEMI_DEVICE_PUT_SIGNAL)
#undef ACLSHMEMI_DEVICE_PUT_SIGNAL

#define ACLSHMEMI_DEVICE_PUT_SIGNAL(NAME, T, CALL)                                                                   \
  inline void aclshmem_##NAME##_##CALL(T* dst, const T* src, const non_contiguous_copy_param& params,                \
                                       int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept {             \
    aclshmemi_put("aclshmem_" #NAME "_" #CALL, dst, src, params, pe);                                                \
    shmemx_signal32("aclshmem_" #NAME "_" #CALL, sig_addr, signal, sig_op, pe);                                      \
  }                                                                                                                  \
  template <typename D, typename S, typename = aclshmemi_if_tensors<T, D, S>, typename Amount>                       \
  void aclshmem_##NAME##_##CALL(const D& dst, const S& src, const Amount& amount, int32_t* sig_addr, int32_t signal, \
                                int sig_op, int pe) noexcept {                                                       \
    aclshmem_##NAME##_##CALL(dst.GetPhyAddr(), src.GetPhyAddr(), amount, sig_addr, signal, sig_op, pe);              \
  }
#define ACLSHMEMI_DEVICE_PUT_SIGNALS(NAME, T)      \
  ACLSHMEMI_DEVICE_PUT_SIGNAL(NAME, T, put_signal) \
  ACLSHMEMI_DEVICE_PUT_SIGNAL(NAME, T, put_signal_nbi)
ACLSHMEM_DEVICE_TYPES(ACLSHMEMI_DEVICE_PUT_SIGNALS)
#undef ACLSHMEMI_DEVICE_PUT_SIGNALS
#undef ACLSHMEMI_DEVICE_PUT_SIGNAL

inline void aclshmem_putmem_signal(void* dst, const void* src, size_t bytes, int32_t* sig_addr, int32_t signal,
                                   int sig_op, int pe) noexcept {
  aclshmemi_put_signal("aclshmem_putmem_signal", dst, src, bytes, 1, sig_addr, signal, sig_op, pe);
}
inline void aclshmem_putmem_signal_nbi(void* dst, const void* src, size_t bytes, int32_t* sig_addr, int32_t signal,
                                       int sig_op, int pe) noexcept {
  aclshmemi_put_signal("aclshmem_putmem_signal_nbi", dst, src, bytes, 1, sig_addr, signal, sig_op, pe);
}

#endif
