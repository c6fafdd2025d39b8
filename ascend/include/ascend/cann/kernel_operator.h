/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small stand-in for the header of this name of Ascend C, so that kernels which only move data and synchronise
 * compile for the cores of shmemx_launch: qualifiers, tensors, copies, the index of a core. Arithmetic is not included.
 *
 * A core executes in order: there are no pipelines to wait for, so that flags and barriers between them only order
 * memory. A core's own memory (UB) is the scratch of shmemx_interface.h, by offsets, or any memory. Put this folder on
 * the include path only without CANN.
 */
#ifndef SHMEM_ASCEND_KERNEL_OPERATOR_H
#define SHMEM_ASCEND_KERNEL_OPERATOR_H

#ifndef __cplusplus
#error "kernel_operator.h is for C++"
#endif

#include <chrono>
#include <cstdint>
#include <cstring>

#include "../../aclshmem.h"
#ifdef USE_SIMT
#include "simt_api/asc_simt.h" /* IWYU pragma: export */
#endif

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are Ascend C's */
#define __gm__
#define __ubuf__
#define __aicore__
#define __global__
#define __aiv__
#define GM_ADDR uint8_t*
/* NOLINTEND(bugprone-reserved-identifier) */

/* A kernel runs on vector cores only; each is a block of its own. */
#define ASCEND_IS_AIV (true)
#define ASCEND_IS_NOT_AIV (false)
#define ASCEND_IS_AIC (false)

/* Alignments of a core's own memory, which Ascend SHMEM defines for kernels. */
constexpr uint32_t UB_ALIGN_SIZE = 32;
constexpr uint32_t UB_ALIGN_SIZE_64 = 64;

using half = aclshmem_half_t;
using bfloat16_t = aclshmem_bfloat16_t;

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

inline void pipe_barrier(pipe_t /*pipe*/) {
  shmem_fence();
}
#define set_flag(from, to, id) pipe_barrier(PIPE_ALL)
#define wait_flag(from, to, id) pipe_barrier(PIPE_ALL)

namespace AscendC {

using TEventID = int8_t;

enum class HardEvent { MTE2_MTE3, MTE3_MTE2, MTE3_S, MTE2_S, S_MTE2, S_MTE3, MTE2_V, V_MTE2, V_MTE3, MTE3_V, V_S, S_V };

inline int64_t GetBlockIdx() {
  const shmemx_core_t* core = shmemx_current_core();
  return core != nullptr ? shmemx_core_index(core) : 0;
}
inline int64_t GetBlockNum() {
  const shmemx_core_t* core = shmemx_current_core();
  return core != nullptr ? shmemx_core_count(core) : 1;
}
inline int64_t GetSubBlockNum() {
  return 1;
}
inline int64_t GetSubBlockIdx() {
  return 0;
}
/* Nanoseconds. */
inline int64_t GetSystemCycle() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
/* A barrier of the cores of this PE. */
template <bool IsAivOnly = true>
void SyncAll() {
  shmemx_core_sync(shmemx_current_core());
}

/* Flags between cores, which count: a wait takes a count. Mode 0 gives each core one when all cores have set the flag;
 * mode 1 the two vector cores of a block, when both have; mode 2 the vector cores of a block when its cube core has set
 * it, and the other way round. Here the cores 2b and 2b + 1 are a block, and in mode 2 each is the other's partner.
 * Flags are 0 to 15. An error, also of a wait that cannot end, stays with the core, and shmemx_launch returns it. */
template <uint8_t Mode, pipe_t Pipe>
void CrossCoreSetFlag(uint16_t flag) {
  static_assert(Mode <= SHMEMX_FLAG_PARTNER, "modes are 0, 1 and 2");
  shmemx_core_flag_set(shmemx_current_core(), Mode, flag);
}
template <uint8_t Mode = 0, pipe_t Pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t flag) {
  shmemx_core_flag_wait(shmemx_current_core(), flag);
}

template <pipe_t Pipe>
void PipeBarrier() {
  shmem_fence();
}
template <HardEvent Event>
void SetFlag(int32_t /*id*/) {
  shmem_fence();
}
template <HardEvent Event>
void WaitFlag(int32_t /*id*/) {}

/* Elements at an address, which this does not own. */
template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;
  void SetGlobalBuffer(T* buffer, uint64_t size = 0) {
    buffer_ = buffer;
    size_ = size;
  }
  T* GetPhyAddr() const { return buffer_; }
  T* GetPhyAddr(uint64_t offset) const { return buffer_ + offset; }
  uint64_t GetSize() const { return size_; }
  T GetValue(uint64_t i) const { return buffer_[i]; }
  void SetValue(uint64_t i, T value) const { buffer_[i] = value; }
  /* From element `offset` on. */
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor rest;
    rest.SetGlobalBuffer(buffer_ + offset, size_ > offset ? size_ - offset : 0);
    return rest;
  }

 private:
  T* buffer_ = nullptr;
  uint64_t size_ = 0;
};

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM };

/* Where a tensor is: an offset in a core's own memory, or an address; its bytes. */
struct TBuffAddr {
  uint32_t dataLen = 0;
  uint64_t bufferAddr = 0;
  uint8_t logicPos = 0;
};

/* The same in a core's own memory, by offsets in it. */
template <typename T>
class LocalTensor {
 public:
  using PrimType = T;
  LocalTensor() = default;
  LocalTensor(T* buffer, uint32_t size) {
    address_.bufferAddr = reinterpret_cast<uintptr_t>(buffer);
    address_.dataLen = static_cast<uint32_t>(size * sizeof(T));
  }
  T* GetPhyAddr() const {
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    auto* const pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(address_.bufferAddr));
    return static_cast<T*>(address_.bufferAddr < SHMEMX_SCRATCH_SIZE ? shmemx_scratch(pointer) : pointer);
  }
  T* GetPhyAddr(uint32_t offset) const { return GetPhyAddr() + offset; }
  uint32_t GetSize() const { return static_cast<uint32_t>(address_.dataLen / sizeof(T)); }
  void SetSize(uint32_t size) { address_.dataLen = static_cast<uint32_t>(size * sizeof(T)); }
  T GetValue(uint32_t i) const { return GetPhyAddr()[i]; }
  void SetValue(uint32_t i, T value) const { GetPhyAddr()[i] = value; }
  LocalTensor operator[](uint32_t offset) const {
    return LocalTensor(GetPhyAddr() + offset, GetSize() > offset ? GetSize() - offset : 0);
  }

  TBuffAddr address_; /* as in Ascend C, for kernels that set it */
};

/* Memory of a core for tensors: TPipe deals it out from its beginning, TBuf is a part of it. A kernel has one TPipe. */
template <TPosition Position>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get() const {
    return GetWithOffset<T>(size_ / static_cast<uint32_t>(sizeof(T)), 0);
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t size) const {
    return GetWithOffset<T>(size, 0);
  }
  /* `size` elements from byte `offset` on. */
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t size, uint32_t offset) const {
    LocalTensor<T> tensor;
    tensor.address_.bufferAddr = begin_ + offset;
    tensor.address_.dataLen = static_cast<uint32_t>(size * sizeof(T));
    tensor.address_.logicPos = static_cast<uint8_t>(Position);
    return tensor;
  }

 private:
  friend class TPipe;
  uint32_t begin_ = 0;
  uint32_t size_ = 0;
};
class TPipe {
 public:
  /* At a multiple of 32 bytes. False: the core has no more. */
  template <TPosition Position>
  bool InitBuffer(TBuf<Position>& buffer, uint32_t size) {
    const uint32_t whole = (size + 31) / 32 * 32;
    if (size > SHMEMX_SCRATCH_SIZE || whole > SHMEMX_SCRATCH_SIZE - used_) {
      return false;
    }
    buffer.begin_ = used_;
    buffer.size_ = size;
    used_ += whole;
    return true;
  }

 private:
  uint32_t used_ = 0;
};

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count) {
  std::memcpy(static_cast<void*>(dst.GetPhyAddr()), src.GetPhyAddr(), count * sizeof(T));
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  std::memcpy(static_cast<void*>(dst.GetPhyAddr()), src.GetPhyAddr(), count * sizeof(T));
}

/* blockCount blocks of blockLen bytes. The gaps between them are of bytes in global memory and of 32 bytes in a core's
 * own, where a block begins at a multiple of 32. Nothing is filled in. */
struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  uint32_t srcStride = 0;
  uint32_t dstStride = 0;
  uint32_t rsv = 0;

  DataCopyExtParams() = default;
  /* The numbers have any type, as kernels pass them. */
  template <typename Count, typename Length, typename Src, typename Dst, typename Reserved>
  DataCopyExtParams(Count count, Length length, Src src_gap, Dst dst_gap, Reserved reserved)
      : blockCount(static_cast<uint16_t>(count)),
        blockLen(static_cast<uint32_t>(length)),
        srcStride(static_cast<uint32_t>(src_gap)),
        dstStride(static_cast<uint32_t>(dst_gap)),
        rsv(static_cast<uint32_t>(reserved)) {}
};
template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  T paddingValue = T();

  DataCopyPadExtParams() = default;
  template <typename Value>
  DataCopyPadExtParams(bool pads, uint8_t left, uint8_t right, Value value)
      : isPad(pads), leftPadding(left), rightPadding(right), paddingValue(static_cast<T>(value)) {}
};
inline void asci_copy_blocks(void* dst, const void* src, const DataCopyExtParams& params, size_t dst_step,
                             size_t src_step) {
  for (size_t i = 0; i < params.blockCount; ++i) {
    std::memcpy(static_cast<char*>(dst) + i * dst_step, static_cast<const char*>(src) + i * src_step, params.blockLen);
  }
}
inline size_t asci_own_step(const DataCopyExtParams& params, uint32_t gap) {
  return (size_t{params.blockLen} + 31) / 32 * 32 + size_t{gap} * 32;
}
template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params,
                 const DataCopyPadExtParams<T>& /*pad*/) {
  asci_copy_blocks(dst.GetPhyAddr(), src.GetPhyAddr(), params, asci_own_step(params, params.dstStride),
                   size_t{params.blockLen} + params.srcStride);
}
template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params) {
  asci_copy_blocks(dst.GetPhyAddr(), src.GetPhyAddr(), params, size_t{params.blockLen} + params.dstStride,
                   asci_own_step(params, params.srcStride));
}

}  // namespace AscendC

/* Stores `value` at `address` by way of `scratch`, as kernels of Ascend SHMEM's examples do. */
template <typename T>
void aclshmemi_set_value(uint8_t* address, T value, const AscendC::LocalTensor<T>& scratch, uint32_t /*sync_id*/) {
  scratch.SetValue(0, value);
  std::memcpy(address, scratch.GetPhyAddr(), sizeof(T));
}

#endif
