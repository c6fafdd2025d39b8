/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's calls of the engines RoCE, SDMA and UDMA. C++ only; included by aclshmem_device.h.
 *
 * All engines are load and store on a node here, and UCX between nodes: a call does what the call of the same name
 * without the engine does, and ends the job if that would. A copy is complete for the caller when the call returns;
 * other PEs must see it after the engine's quiet, a barrier or a signal, as there. Atomic operations are those of
 * aclshmem_device_atomic.h.
 *
 *  - `buf` is scratch as in aclshmem_device_mte.h. It is not used; a call ends the job if it is smaller than the engine
 *    needs there: 64 bytes for SDMA, 128 for the others. With PIPE_S a call of UDMA ignores it.
 *  - `sync_id` is ignored.
 *  - `qp_idx` is a queue of the engine, less than the number of aclshmemx_set_qp_num, which is 1 if it is not called.
 *  - An action adds a call to a batch, or ends the batch. Calls of a batch are not deferred.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_ENGINES_H
#define SHMEM_ACLSHMEM_DEVICE_ENGINES_H

#include "aclshmem_device_atomic.h"
#include "aclshmem_device_mte.h"
#include "aclshmem_memory.h"
#include "aclshmem_state.h"

/* A batch of calls. Its count is of those since it began. */
struct aclshmemx_submit_state_t {
  uint32_t pending_count = 0;
  uint32_t reserved = 0;
};
struct aclshmemx_defer_t {
  aclshmemx_submit_state_t& state;
  explicit aclshmemx_defer_t(aclshmemx_submit_state_t& batch) noexcept : state(batch) {}
};
struct aclshmemx_submit_t {
  aclshmemx_submit_state_t& state;
  explicit aclshmemx_submit_t(aclshmemx_submit_state_t& batch) noexcept : state(batch) {}
};
/* The optional last argument of a call. */
struct aclshmemi_action {
  aclshmemi_action() = default;
  aclshmemi_action(const aclshmemx_defer_t& action) noexcept { ++action.state.pending_count; }
  aclshmemi_action(const aclshmemx_submit_t& action) noexcept { action.state.pending_count = 0; }
};

enum : uint32_t { ACLSHMEM_ROCE_QP_AGGREGATE_MAX_OPS = 1023 };
enum { ACLSHMEMI_PIPE_S = 0, ACLSHMEMI_PIPE_MTE3 = 5 };

/* ---- What is checked ---- */

inline void aclshmemi_check_scratch(const char* call, int engine, const void* buf, uint64_t bytes) noexcept {
  const uint64_t least = engine == SHMEMX_ENGINE_SDMA ? ACLSHMEMI_SDMA_SCRATCH_SIZE : ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE;
  if (bytes < least) {
    shmemx_refuse(call, engine == SHMEMX_ENGINE_SDMA ? "scratch must have 64 bytes" : "scratch must have 128 bytes");
  }
  const auto offset = reinterpret_cast<uintptr_t>(buf);
  if (offset < SHMEMX_SCRATCH_SIZE && offset + least > SHMEMX_SCRATCH_SIZE) {
    shmemx_refuse(call, "scratch goes beyond the core's own memory");
  }
}
inline void aclshmemi_check_queue(const char* call, int engine, uint32_t queue) noexcept {
  if (queue >= shmemx_engine(engine)->queues) {
    shmemx_refuse(call, "there is no such queue (qp_idx); aclshmemx_set_qp_num sets their number");
  }
}
inline void aclshmemi_check_pe(const char* call, int64_t pe) noexcept {
  if (!aclshmemi_running() || pe < 0 || pe >= shmem_n_pes()) {
    shmemx_refuse(call, "there is no such PE");
  }
}
/* A relay is neither the caller nor the peer, which is not the caller either. */
inline void aclshmemi_check_relay(const char* call, int pe, int relay_pe) noexcept {
  aclshmemi_check_pe(call, pe);
  aclshmemi_check_pe(call, relay_pe);
  if (pe == relay_pe || pe == shmem_my_pe() || relay_pe == shmem_my_pe()) {
    shmemx_refuse(call, "the PE, its relay and the caller are not three PEs");
  }
}

/* ---- Copies ---- */

/* The element type of a call with tensors: the one named, or that of the destination. */
template <typename Named, typename D, typename S>
using aclshmemi_copied =
    typename std::enable_if<std::is_same<aclshmemi_element<D>, aclshmemi_element<S>>::value &&
                                (std::is_void<Named>::value || std::is_same<Named, aclshmemi_element<D>>::value),
                            aclshmemi_element<D>>::type;
template <typename Tensor>
uint64_t aclshmemi_bytes_of(const Tensor& tensor) noexcept {
  return tensor.GetSize() * sizeof(aclshmemi_element<Tensor>);
}

/* A put or a get (MOVE) of an engine, by pointers and by tensors. EXTRA: parameters between `pe` and `sync_id`, with a
 * comma each; CHECK: what is checked of them. */
#define ACLSHMEMI_ENGINE_COPY(CALL, ENGINE, MOVE, EXTRA, CHECK)                                                       \
  template <typename T, int Pipe = ACLSHMEMI_PIPE_MTE3>                                                               \
  void aclshmemx_##CALL(T* dst, T* src, T* buf, uint32_t elem_size, int pe EXTRA, uint32_t /*sync_id*/ = 0,           \
                        const aclshmemi_action& /*action*/ = aclshmemi_action()) noexcept {                           \
    if (Pipe != ACLSHMEMI_PIPE_S) {                                                                                   \
      aclshmemi_check_scratch("aclshmemx_" #CALL, ENGINE, buf, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);                    \
    }                                                                                                                 \
    CHECK("aclshmemx_" #CALL)                                                                                         \
    MOVE("aclshmemx_" #CALL, dst, src, elem_size, sizeof(T), pe);                                                     \
  }                                                                                                                   \
  template <typename Named = void, int Pipe = ACLSHMEMI_PIPE_MTE3, typename D, typename S, typename B,                \
            typename T = aclshmemi_copied<Named, D, S>>                                                               \
  void aclshmemx_##CALL(const D& dst, const S& src, const B& buf, uint32_t elem_size, int pe EXTRA,                   \
                        uint32_t /*sync_id*/ = 0, const aclshmemi_action& /*action*/ = aclshmemi_action()) noexcept { \
    if (Pipe != ACLSHMEMI_PIPE_S) {                                                                                   \
      aclshmemi_check_scratch("aclshmemx_" #CALL, ENGINE, buf.GetPhyAddr(), aclshmemi_bytes_of(buf));                 \
    }                                                                                                                 \
    CHECK("aclshmemx_" #CALL)                                                                                         \
    MOVE("aclshmemx_" #CALL, dst.GetPhyAddr(), src.GetPhyAddr(), elem_size, sizeof(T), pe);                           \
  }
/* The same for SDMA, whose pointers to scratch come with a size. */
#define ACLSHMEMI_SDMA_COPY(CALL, MOVE, EXTRA, CHECK)                                                              \
  template <typename T>                                                                                            \
  void aclshmemx_##CALL(T* dst, T* src, T* buf, uint32_t ub_size, uint32_t elem_size, int pe EXTRA,                \
                        uint32_t /*sync_id*/) noexcept {                                                           \
    aclshmemi_check_scratch("aclshmemx_" #CALL, SHMEMX_ENGINE_SDMA, buf, ub_size);                                 \
    CHECK("aclshmemx_" #CALL)                                                                                      \
    MOVE("aclshmemx_" #CALL, dst, src, elem_size, sizeof(T), pe);                                                  \
  }                                                                                                                \
  template <typename Named = void, typename D, typename S, typename B, typename T = aclshmemi_copied<Named, D, S>> \
  void aclshmemx_##CALL(const D& dst, const S& src, const B& buf, uint32_t elem_size, int pe EXTRA,                \
                        uint32_t /*sync_id*/) noexcept {                                                           \
    aclshmemi_check_scratch("aclshmemx_" #CALL, SHMEMX_ENGINE_SDMA, buf.GetPhyAddr(), aclshmemi_bytes_of(buf));    \
    CHECK("aclshmemx_" #CALL)                                                                                      \
    MOVE("aclshmemx_" #CALL, dst.GetPhyAddr(), src.GetPhyAddr(), elem_size, sizeof(T), pe);                        \
  }
#define ACLSHMEMI_NO_CHECK(CALL)
#define ACLSHMEMI_QP , uint32_t qp_idx
#define ACLSHMEMI_CHECK_RDMA_QP(CALL) aclshmemi_check_queue(CALL, SHMEMX_ENGINE_RDMA, qp_idx);
#define ACLSHMEMI_CHECK_SDMA_QP(CALL) aclshmemi_check_queue(CALL, SHMEMX_ENGINE_SDMA, qp_idx);
#define ACLSHMEMI_CHECK_UDMA_QP(CALL) aclshmemi_check_queue(CALL, SHMEMX_ENGINE_UDMA, qp_idx);
#define ACLSHMEMI_RELAY , int relay_pe
#define ACLSHMEMI_CHECK_RELAY(CALL) aclshmemi_check_relay(CALL, pe, relay_pe);

ACLSHMEMI_ENGINE_COPY(roce_put_nbi, SHMEMX_ENGINE_RDMA, shmemx_put_elements, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_ENGINE_COPY(roce_get_nbi, SHMEMX_ENGINE_RDMA, shmemx_get_elements, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_ENGINE_COPY(roce_qp_put_nbi, SHMEMX_ENGINE_RDMA, shmemx_put_elements, ACLSHMEMI_QP, ACLSHMEMI_CHECK_RDMA_QP)
ACLSHMEMI_ENGINE_COPY(roce_qp_get_nbi, SHMEMX_ENGINE_RDMA, shmemx_get_elements, ACLSHMEMI_QP, ACLSHMEMI_CHECK_RDMA_QP)
ACLSHMEMI_SDMA_COPY(sdma_put_nbi, shmemx_put_elements, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_SDMA_COPY(sdma_get_nbi, shmemx_get_elements, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_SDMA_COPY(sdma_qp_put_nbi, shmemx_put_elements, ACLSHMEMI_QP, ACLSHMEMI_CHECK_SDMA_QP)
ACLSHMEMI_SDMA_COPY(sdma_qp_get_nbi, shmemx_get_elements, ACLSHMEMI_QP, ACLSHMEMI_CHECK_SDMA_QP)
ACLSHMEMI_ENGINE_COPY(udma_put_nbi, SHMEMX_ENGINE_UDMA, shmemx_put_elements, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_ENGINE_COPY(udma_get_nbi, SHMEMX_ENGINE_UDMA, shmemx_get_elements, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_ENGINE_COPY(udma_qp_put_nbi, SHMEMX_ENGINE_UDMA, shmemx_put_elements, ACLSHMEMI_QP, ACLSHMEMI_CHECK_UDMA_QP)
ACLSHMEMI_ENGINE_COPY(udma_qp_get_nbi, SHMEMX_ENGINE_UDMA, shmemx_get_elements, ACLSHMEMI_QP, ACLSHMEMI_CHECK_UDMA_QP)
/* By way of PE `relay_pe` there; by the usual one here. */
ACLSHMEMI_ENGINE_COPY(udma_relay_put_nbi, SHMEMX_ENGINE_UDMA, shmemx_put_elements, ACLSHMEMI_RELAY,
                      ACLSHMEMI_CHECK_RELAY)
ACLSHMEMI_ENGINE_COPY(udma_relay_get_nbi, SHMEMX_ENGINE_UDMA, shmemx_get_elements, ACLSHMEMI_RELAY,
                      ACLSHMEMI_CHECK_RELAY)

/* Then stores `signal` in a word of 64 bits, which aclshmem_uint64_wait_until waits for. */
template <typename T>
void aclshmemi_put_signal64(const char* call, T* dst, T* src, uint32_t elem_size, uint64_t* sig_addr, uint64_t signal,
                            int pe) noexcept {
  shmemx_put_elements(call, dst, src, elem_size, sizeof(T), pe);
  shmem_fence();
  aclshmemi_atomic<uint64_t>(call, SHMEMX_SWAP, sig_addr, signal, 0, pe);
}
#define ACLSHMEMI_PUT_SIGNAL64(CALL, EXTRA, CHECK)                                                             \
  template <typename T>                                                                                        \
  void aclshmemx_##CALL(T* dst, T* src, uint32_t elem_size, uint64_t* sig_addr, uint64_t signal,               \
                        int pe EXTRA) noexcept {                                                               \
    CHECK("aclshmemx_" #CALL)                                                                                  \
    aclshmemi_put_signal64("aclshmemx_" #CALL, dst, src, elem_size, sig_addr, signal, pe);                     \
  }                                                                                                            \
  template <typename T, int Pipe = ACLSHMEMI_PIPE_MTE3>                                                        \
  void aclshmemx_##CALL(T* dst, T* src, uint32_t elem_size, uint64_t* sig_addr, uint64_t signal, int pe EXTRA, \
                        uint8_t* buf, uint32_t /*sync_id*/ = 0) noexcept {                                     \
    if (Pipe != ACLSHMEMI_PIPE_S) {                                                                            \
      aclshmemi_check_scratch("aclshmemx_" #CALL, SHMEMX_ENGINE_UDMA, buf, ACLSHMEM_UDMA_MTE_STAGING_UB_SIZE); \
    }                                                                                                          \
    CHECK("aclshmemx_" #CALL)                                                                                  \
    aclshmemi_put_signal64("aclshmemx_" #CALL, dst, src, elem_size, sig_addr, signal, pe);                     \
  }
ACLSHMEMI_PUT_SIGNAL64(udma_put_signal_nbi, , ACLSHMEMI_NO_CHECK)
ACLSHMEMI_PUT_SIGNAL64(udma_qp_put_signal_nbi, ACLSHMEMI_QP, ACLSHMEMI_CHECK_UDMA_QP)

#undef ACLSHMEMI_PUT_SIGNAL64
#undef ACLSHMEMI_SDMA_COPY
#undef ACLSHMEMI_ENGINE_COPY
#undef ACLSHMEMI_CHECK_RELAY
#undef ACLSHMEMI_RELAY
#undef ACLSHMEMI_CHECK_UDMA_QP
#undef ACLSHMEMI_CHECK_SDMA_QP
#undef ACLSHMEMI_CHECK_RDMA_QP
#undef ACLSHMEMI_QP
#undef ACLSHMEMI_NO_CHECK

/* ---- Completion of the calling core's copies and atomic operations ---- */

template <typename T>
void aclshmemx_roce_quiet(uint32_t pe, T* buf, uint32_t /*sync_id*/) noexcept {
  aclshmemi_check_scratch("aclshmemx_roce_quiet", SHMEMX_ENGINE_RDMA, buf, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);
  aclshmemi_check_pe("aclshmemx_roce_quiet", pe);
  shmem_quiet();
}
template <typename T>
void aclshmemx_roce_qp_quiet(uint32_t pe, uint32_t qp_idx, T* buf, uint32_t sync_id) noexcept {
  aclshmemi_check_queue("aclshmemx_roce_qp_quiet", SHMEMX_ENGINE_RDMA, qp_idx);
  aclshmemx_roce_quiet(pe, buf, sync_id);
}
template <typename B, typename T = aclshmemi_element<B>>
void aclshmemx_roce_qp_quiet(uint32_t pe, uint32_t qp_idx, const B& buf, uint32_t sync_id) noexcept {
  aclshmemi_check_scratch("aclshmemx_roce_qp_quiet", SHMEMX_ENGINE_RDMA, buf.GetPhyAddr(), aclshmemi_bytes_of(buf));
  aclshmemx_roce_qp_quiet(pe, qp_idx, buf.GetPhyAddr(), sync_id);
}
inline void aclshmemx_udma_quiet(int pe) noexcept {
  aclshmemi_check_pe("aclshmemx_udma_quiet", pe);
  shmem_quiet();
}
inline void aclshmemx_udma_qp_quiet(int pe, uint32_t qp_idx) noexcept {
  aclshmemi_check_queue("aclshmemx_udma_qp_quiet", SHMEMX_ENGINE_UDMA, qp_idx);
  aclshmemx_udma_quiet(pe);
}

/* Also adds one to the notify of the calling core, or of a queue: aclrtWaitAndResetNotify waits for it. */
inline void aclshmemi_notify(const char* call, int number) noexcept {
  shmemx_notify_t* const notify = shmemx_core_notify(number);
  if (notify == nullptr) {
    shmemx_refuse(call, "this core has no notify: its number is 72 or more");
  }
  shmemx_notify_record(notify);
}
inline int aclshmemi_core() noexcept {
  const shmemx_core_t* core = shmemx_current_core();
  return core != nullptr ? shmemx_core_index(core) : 0;
}

/* Each of these by pointer and size, and by tensor; with _qp_ for a queue. */
#define ACLSHMEMI_SDMA_END(NAME, QP_NAME, ACT, QP_ACT)                                                             \
  template <typename T>                                                                                            \
  void aclshmemx_##NAME(T* buf, uint32_t ub_size, uint32_t /*sync_id*/) noexcept {                                 \
    aclshmemi_check_scratch("aclshmemx_" #NAME, SHMEMX_ENGINE_SDMA, buf, ub_size);                                 \
    ACT;                                                                                                           \
  }                                                                                                                \
  template <typename B, typename T = aclshmemi_element<B>>                                                         \
  void aclshmemx_##NAME(const B& buf, uint32_t /*sync_id*/) noexcept {                                             \
    aclshmemi_check_scratch("aclshmemx_" #NAME, SHMEMX_ENGINE_SDMA, buf.GetPhyAddr(), aclshmemi_bytes_of(buf));    \
    ACT;                                                                                                           \
  }                                                                                                                \
  template <typename T>                                                                                            \
  void aclshmemx_##QP_NAME(T* buf, uint32_t ub_size, uint32_t qp_idx, uint32_t /*sync_id*/) noexcept {             \
    aclshmemi_check_scratch("aclshmemx_" #QP_NAME, SHMEMX_ENGINE_SDMA, buf, ub_size);                              \
    aclshmemi_check_queue("aclshmemx_" #QP_NAME, SHMEMX_ENGINE_SDMA, qp_idx);                                      \
    QP_ACT;                                                                                                        \
  }                                                                                                                \
  template <typename B, typename T = aclshmemi_element<B>>                                                         \
  void aclshmemx_##QP_NAME(const B& buf, uint32_t qp_idx, uint32_t /*sync_id*/) noexcept {                         \
    aclshmemi_check_scratch("aclshmemx_" #QP_NAME, SHMEMX_ENGINE_SDMA, buf.GetPhyAddr(), aclshmemi_bytes_of(buf)); \
    aclshmemi_check_queue("aclshmemx_" #QP_NAME, SHMEMX_ENGINE_SDMA, qp_idx);                                      \
    QP_ACT;                                                                                                        \
  }
ACLSHMEMI_SDMA_END(sdma_quiet, sdma_qp_quiet, shmem_quiet(), shmem_quiet())
ACLSHMEMI_SDMA_END(sdma_notify_record, sdma_qp_notify_record,
                   aclshmemi_notify("aclshmemx_sdma_notify_record", aclshmemi_core()),
                   aclshmemi_notify("aclshmemx_sdma_qp_notify_record", static_cast<int>(qp_idx)))
#undef ACLSHMEMI_SDMA_END

/* ---- Operations on a cache ----
 *
 * Caches are coherent: each of these orders earlier accesses of the core before later ones, and does no more. */
enum class ACLSHMEMCMOTYPE : uint32_t { CMO_TYPE_PREFETCH = 6, CMO_TYPE_WRITEBACK, CMO_TYPE_INVALID, CMO_TYPE_FLUSH };

template <typename T>
void aclshmemx_cmo_nbi(T* src, uint32_t elem_size, ACLSHMEMCMOTYPE /*cmo_type*/, T* buf, uint32_t ub_size,
                       uint32_t /*sync_id*/) noexcept {
  aclshmemi_check_scratch("aclshmemx_cmo_nbi", SHMEMX_ENGINE_SDMA, buf, ub_size);
  shmemx_dcci_range(src, elem_size * sizeof(T));
}
template <typename S, typename B, typename T = aclshmemi_copied<void, S, S>>
void aclshmemx_cmo_nbi(const S& src, uint32_t elem_size, ACLSHMEMCMOTYPE cmo_type, const B& buf,
                       uint32_t sync_id) noexcept {
  aclshmemx_cmo_nbi(src.GetPhyAddr(), elem_size, cmo_type, static_cast<T*>(static_cast<void*>(buf.GetPhyAddr())),
                    static_cast<uint32_t>(aclshmemi_bytes_of(buf)), sync_id);
}
template <typename T>
void aclshmemx_cmo_qp_nbi(T* src, uint32_t elem_size, ACLSHMEMCMOTYPE cmo_type, T* buf, uint32_t ub_size,
                          uint32_t qp_idx, uint32_t sync_id) noexcept {
  aclshmemi_check_queue("aclshmemx_cmo_qp_nbi", SHMEMX_ENGINE_SDMA, qp_idx);
  aclshmemx_cmo_nbi(src, elem_size, cmo_type, buf, ub_size, sync_id);
}
template <typename S, typename B, typename T = aclshmemi_copied<void, S, S>>
void aclshmemx_cmo_qp_nbi(const S& src, uint32_t elem_size, ACLSHMEMCMOTYPE cmo_type, const B& buf, uint32_t qp_idx,
                          uint32_t sync_id) noexcept {
  aclshmemi_check_queue("aclshmemx_cmo_qp_nbi", SHMEMX_ENGINE_SDMA, qp_idx);
  aclshmemx_cmo_nbi(src, elem_size, cmo_type, buf, sync_id);
}

/* ---- Synchronisation of PEs by RoCE ----
 *
 * One core of each member calls them, for its PE, and the other cores of that PE go on. A barrier completes that core's
 * copies; a sync does not. 0, or the negative errno of a wait that failed, which shmemx_launch returns. */
inline int aclshmemi_sync_alone(const char* call, const aclshmemx_team_t* team) noexcept {
  if (team == nullptr) {
    shmemx_refuse(call, "team is NULL");
  }
  return shmemx_sync_alone(call, shmemx_team_by_number(team->team_idx));
}
inline int aclshmemx_roce_team_sync(const aclshmemx_team_t* team) noexcept {
  return aclshmemi_sync_alone("aclshmemx_roce_team_sync", team);
}
inline void aclshmemx_roce_sync_all() noexcept {
  shmemx_sync_alone("aclshmemx_roce_sync_all", SHMEM_TEAM_WORLD);
}
inline int aclshmemx_roce_barrier(const aclshmemx_team_t* team) noexcept {
  shmem_quiet();
  return aclshmemi_sync_alone("aclshmemx_roce_barrier", team);
}
inline void aclshmemx_roce_barrier_all() noexcept {
  shmem_quiet();
  shmemx_sync_alone("aclshmemx_roce_barrier_all", SHMEM_TEAM_WORLD);
}
/* The same with scratch. */
template <typename T>
int aclshmemx_roce_team_sync(const aclshmemx_team_t* team, T* buf, uint32_t /*sync_id*/) noexcept {
  aclshmemi_check_scratch("aclshmemx_roce_team_sync", SHMEMX_ENGINE_RDMA, buf, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);
  return aclshmemx_roce_team_sync(team);
}
template <typename T>
void aclshmemx_roce_sync_all(T* buf, uint32_t /*sync_id*/) noexcept {
  aclshmemi_check_scratch("aclshmemx_roce_sync_all", SHMEMX_ENGINE_RDMA, buf, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);
  aclshmemx_roce_sync_all();
}
template <typename T>
int aclshmemx_roce_barrier(const aclshmemx_team_t* team, T* buf, uint32_t /*sync_id*/) noexcept {
  aclshmemi_check_scratch("aclshmemx_roce_barrier", SHMEMX_ENGINE_RDMA, buf, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);
  return aclshmemx_roce_barrier(team);
}
template <typename T>
void aclshmemx_roce_barrier_all(T* buf, uint32_t /*sync_id*/) noexcept {
  aclshmemi_check_scratch("aclshmemx_roce_barrier_all", SHMEMX_ENGINE_RDMA, buf, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);
  aclshmemx_roce_barrier_all();
}
#define aclshmemx_roce_sync aclshmemx_roce_team_sync

/* ---- Atomic operations, and the address that RoCE uses: see aclshmem_ptr ---- */

ACLSHMEMI_ENGINE_ATOMICS(roce)
ACLSHMEMI_ENGINE_BITS(roce)
ACLSHMEMI_ENGINE_ATOMICS(udma)
ACLSHMEMI_ENGINE_BITS(udma)
#undef ACLSHMEMI_ENGINE_BITS
#undef ACLSHMEMI_ENGINE_ATOMICS

inline void* aclshmem_roce_ptr(void* ptr, int pe) noexcept {
  return aclshmem_ptr(ptr, pe);
}

#endif
