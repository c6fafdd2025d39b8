/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's calls of an engine by name, for the one that is memory's own: MTE. C++ only; included by
 * aclshmem_device.h. Those for other engines: aclshmem_device_engines.h.
 *
 * Copies between memories go through the scratch that the call is given, `ub_size` bytes, which is overwritten; a
 * tensor as scratch has GetSize() elements. The forms without scratch copy from or to a core's own memory. A pointer to
 * scratch or to a core's own memory is the address of memory, or, below SHMEMX_SCRATCH_SIZE, an offset in what the core
 * has of its own (shmemx_interface.h), as kernels write them. A copy is complete when the call returns; `sync_id` is
 * ignored.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_MTE_H
#define SHMEM_ACLSHMEM_DEVICE_MTE_H

#include "aclshmem_device_atomic.h"
#include "aclshmem_device_rma.h"

/* `amount` of a call as blocks: a number of elements is one block. */
template <typename T>
shmemx_blocks_t aclshmemi_amount(const non_contiguous_copy_param& params) noexcept {
  return aclshmemi_blocks<T>(params);
}
template <typename T>
shmemx_blocks_t aclshmemi_amount(uint32_t elem_size) noexcept {
  return aclshmemi_blocks<T>({1, elem_size, 0, 0});
}
template <typename T>
T* aclshmemi_scratch(T* pointer) noexcept {
  return static_cast<T*>(shmemx_scratch(pointer));
}
/* In bytes, of whole elements. */
template <typename T>
shmemx_blocks_t aclshmemi_staged(const shmemx_blocks_t& bytes) noexcept {
  constexpr ptrdiff_t kSize = sizeof(T);
  return {bytes.dst / kSize, bytes.sst / kSize, bytes.bsize / sizeof(T), bytes.nblocks, sizeof(T)};
}

template <typename T, typename Amount>
void aclshmemx_mte_put_nbi(T* dst, T* src, T* buf, uint32_t ub_size, const Amount& amount, int pe,
                           uint32_t /*sync_id*/) noexcept {
  const shmemx_blocks_t blocks = aclshmemi_staged<T>(aclshmemi_amount<T>(amount));
  shmemx_put_staged("aclshmemx_mte_put_nbi", dst, src, &blocks, buf, ub_size, pe);
}
template <typename T, typename Amount>
void aclshmemx_mte_get_nbi(T* dst, T* src, T* buf, uint32_t ub_size, const Amount& amount, int pe,
                           uint32_t /*sync_id*/) noexcept {
  const shmemx_blocks_t blocks = aclshmemi_staged<T>(aclshmemi_amount<T>(amount));
  shmemx_get_staged("aclshmemx_mte_get_nbi", dst, src, &blocks, buf, ub_size, pe);
}

/* Between a core's own memory and that of a PE. */
template <typename T, typename Amount>
void aclshmemx_mte_put_nbi(T* dst, T* src, const Amount& amount, int pe, uint32_t /*sync_id*/) noexcept {
  const shmemx_blocks_t blocks = aclshmemi_amount<T>(amount);
  shmemx_put_blocks("aclshmemx_mte_put_nbi", dst, aclshmemi_scratch(src), &blocks, pe);
}
template <typename T, typename Amount>
void aclshmemx_mte_get_nbi(T* dst, T* src, const Amount& amount, int pe, uint32_t /*sync_id*/) noexcept {
  const shmemx_blocks_t blocks = aclshmemi_amount<T>(amount);
  shmemx_get_blocks("aclshmemx_mte_get_nbi", aclshmemi_scratch(dst), src, &blocks, pe);
}

/* The same with tensors. */
template <typename D, typename S, typename B, typename Amount, typename T = aclshmemi_element<D>,
          typename = aclshmemi_if_tensors<T, D, S>>
void aclshmemx_mte_put_nbi(const D& dst, const S& src, const B& buf, const Amount& amount, int pe,
                           uint32_t sync_id) noexcept {
  aclshmemx_mte_put_nbi(dst.GetPhyAddr(), src.GetPhyAddr(), buf.GetPhyAddr(),
                        static_cast<uint32_t>(buf.GetSize() * sizeof(T)), amount, pe, sync_id);
}
template <typename D, typename S, typename B, typename Amount, typename T = aclshmemi_element<D>,
          typename = aclshmemi_if_tensors<T, D, S>>
void aclshmemx_mte_get_nbi(const D& dst, const S& src, const B& buf, const Amount& amount, int pe,
                           uint32_t sync_id) noexcept {
  aclshmemx_mte_get_nbi(dst.GetPhyAddr(), src.GetPhyAddr(), buf.GetPhyAddr(),
                        static_cast<uint32_t>(buf.GetSize() * sizeof(T)), amount, pe, sync_id);
}
template <typename D, typename S, typename Amount, typename T = aclshmemi_element<D>,
          typename = aclshmemi_if_tensors<T, D, S>>
void aclshmemx_mte_put_nbi(const D& dst, const S& src, const Amount& amount, int pe, uint32_t sync_id) noexcept {
  aclshmemx_mte_put_nbi(dst.GetPhyAddr(), src.GetPhyAddr(), amount, pe, sync_id);
}
template <typename D, typename S, typename Amount, typename T = aclshmemi_element<D>,
          typename = aclshmemi_if_tensors<T, D, S>>
void aclshmemx_mte_get_nbi(const D& dst, const S& src, const Amount& amount, int pe, uint32_t sync_id) noexcept {
  aclshmemx_mte_get_nbi(dst.GetPhyAddr(), src.GetPhyAddr(), amount, pe, sync_id);
}

/* Completes the calling core's copies. */
inline void aclshmemx_mte_quiet() noexcept {
  shmem_quiet();
}

ACLSHMEMI_ENGINE_ATOMICS(mte)

#endif
