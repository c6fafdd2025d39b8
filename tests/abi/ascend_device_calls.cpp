// SPDX-License-Identifier: Apache-2.0
// Each call by which kernels of Ascend SHMEM move data exists, with the same parameters and result. Compiled only, not
// called. For the calls by which they synchronise see ascend_device_names.cpp.
#include <kernel_operator.h>

#include <type_traits>

namespace {

template <typename T>
T* elements = nullptr;
template <typename T>
AscendC::GlobalTensor<T> global;
template <typename T>
AscendC::LocalTensor<T> local;
[[maybe_unused]] int32_t* const signal_word = nullptr;
constexpr non_contiguous_copy_param kBlocks{1, 1, 1, 1};

#define GIVES(T, ...) static_assert(std::is_same_v<decltype(__VA_ARGS__), T>)

#define TYPED(NAME, T)                                                                                    \
  GIVES(void, aclshmem_##NAME##_p(elements<T>, *elements<T>, 0));                                         \
  GIVES(T, aclshmem_##NAME##_g(elements<T>, 0));                                                          \
  GIVES(void, aclshmem_##NAME##_put(elements<T>, elements<T>, 1U, 0));                                    \
  GIVES(void, aclshmem_##NAME##_get(elements<T>, elements<T>, 1U, 0));                                    \
  GIVES(void, aclshmem_##NAME##_iput(elements<T>, elements<T>, 1, 1, 1U, 0));                             \
  GIVES(void, aclshmem_##NAME##_iget(elements<T>, elements<T>, 1, 1, 1U, 0));                             \
  GIVES(void, aclshmem_##NAME##_put_nbi(elements<T>, elements<T>, 1U, 0));                                \
  GIVES(void, aclshmem_##NAME##_get_nbi(elements<T>, elements<T>, 1U, 0));                                \
  GIVES(void, aclshmem_##NAME##_put_nbi(elements<T>, elements<T>, kBlocks, 0));                           \
  GIVES(void, aclshmem_##NAME##_get_nbi(elements<T>, elements<T>, kBlocks, 0));                           \
  GIVES(void, aclshmem_##NAME##_put_nbi(global<T>, global<T>, 1U, 0));                                    \
  GIVES(void, aclshmem_##NAME##_get_nbi(global<T>, global<T>, 1U, 0));                                    \
  GIVES(void, aclshmem_##NAME##_put_nbi(global<T>, local<T>, kBlocks, 0));                                \
  GIVES(void, aclshmem_##NAME##_get_nbi(local<T>, global<T>, kBlocks, 0));                                \
  GIVES(void, aclshmem_##NAME##_put_signal(elements<T>, elements<T>, 1U, signal_word, 1, 0, 0));          \
  GIVES(void, aclshmem_##NAME##_put_signal(global<T>, global<T>, 1U, signal_word, 1, 0, 0));              \
  GIVES(void, aclshmem_##NAME##_put_signal(elements<T>, elements<T>, kBlocks, signal_word, 1, 0, 0));     \
  GIVES(void, aclshmem_##NAME##_put_signal(global<T>, global<T>, kBlocks, signal_word, 1, 0, 0));         \
  GIVES(void, aclshmem_##NAME##_put_signal_nbi(elements<T>, elements<T>, 1U, signal_word, 1, 0, 0));      \
  GIVES(void, aclshmem_##NAME##_put_signal_nbi(global<T>, global<T>, 1U, signal_word, 1, 0, 0));          \
  GIVES(void, aclshmem_##NAME##_put_signal_nbi(elements<T>, elements<T>, kBlocks, signal_word, 1, 0, 0)); \
  GIVES(void, aclshmem_##NAME##_put_signal_nbi(global<T>, global<T>, kBlocks, signal_word, 1, 0, 0));     \
  GIVES(void, aclshmemx_mte_put_nbi(elements<T>, elements<T>, elements<T>, 64U, 1U, 0, 0U));              \
  GIVES(void, aclshmemx_mte_get_nbi(elements<T>, elements<T>, elements<T>, 64U, kBlocks, 0, 0U));         \
  GIVES(void, aclshmemx_mte_put_nbi(global<T>, global<T>, local<T>, 1U, 0, 0U));                          \
  GIVES(void, aclshmemx_mte_get_nbi(global<T>, global<T>, local<T>, kBlocks, 0, 0U));                     \
  GIVES(void, aclshmemx_mte_put_nbi(elements<T>, elements<T>, 1U, 0, 0U));                                \
  GIVES(void, aclshmemx_mte_get_nbi(elements<T>, elements<T>, kBlocks, 0, 0U));                           \
  GIVES(void, aclshmemx_mte_put_nbi(global<T>, local<T>, kBlocks, 0, 0U));                                \
  GIVES(void, aclshmemx_mte_get_nbi(local<T>, global<T>, 1U, 0, 0U));
ACLSHMEM_DEVICE_TYPES(TYPED)
TYPED(half, half)
TYPED(bfloat16, bfloat16_t)

GIVES(void, aclshmem_putmem_signal(elements<char>, elements<char>, 1U, signal_word, 1, 0, 0));
GIVES(void, aclshmem_putmem_signal_nbi(elements<char>, elements<char>, 1U, signal_word, 1, 0, 0));
GIVES(void*, aclshmem_roce_ptr(elements<char>, 0));
GIVES(int, aclshmem_team_pe_mapping(ACLSHMEM_TEAM_WORLD, 0));
GIVES(void, aclshmemx_mte_quiet());

#define ADDS(NAME, T)                                                      \
  GIVES(void, aclshmem_##NAME##_atomic_add(elements<T>, *elements<T>, 0)); \
  GIVES(void, aclshmem_##NAME##_atomic_inc(elements<T>, 0));
ACLSHMEM_ATOMIC_ADD_TYPES(ADDS)
#define SETS(NAME, T)                                                      \
  GIVES(void, aclshmem_##NAME##_atomic_set(elements<T>, *elements<T>, 0)); \
  GIVES(T, aclshmem_##NAME##_atomic_swap(elements<T>, *elements<T>, 0));
ACLSHMEM_ATOMIC_SET_TYPES(SETS)

/// The atomic operations of one engine.
#define ENGINE_ATOMICS(ENGINE, T)                                                 \
  GIVES(T, aclshmemx_##ENGINE##_atomic_fetch(elements<T>, 0));                    \
  GIVES(T, aclshmemx_##ENGINE##_atomic_compare_swap(elements<T>, T(0), T(0), 0)); \
  GIVES(T, aclshmemx_##ENGINE##_atomic_swap(elements<T>, T(0), 0));               \
  GIVES(T, aclshmemx_##ENGINE##_atomic_fetch_inc(elements<T>, 0));                \
  GIVES(T, aclshmemx_##ENGINE##_atomic_fetch_add(elements<T>, T(0), 0));          \
  GIVES(void, aclshmemx_##ENGINE##_atomic_set(elements<T>, T(0), 0));             \
  GIVES(void, aclshmemx_##ENGINE##_atomic_inc(elements<T>, 0));                   \
  GIVES(void, aclshmemx_##ENGINE##_atomic_add(elements<T>, T(0), 0));
#define ENGINE_BITS(ENGINE, T)                                           \
  GIVES(void, aclshmemx_##ENGINE##_atomic_and(elements<T>, T(0), 0));    \
  GIVES(void, aclshmemx_##ENGINE##_atomic_or(elements<T>, T(0), 0));     \
  GIVES(void, aclshmemx_##ENGINE##_atomic_xor(elements<T>, T(0), 0));    \
  GIVES(T, aclshmemx_##ENGINE##_atomic_fetch_and(elements<T>, T(0), 0)); \
  GIVES(T, aclshmemx_##ENGINE##_atomic_fetch_or(elements<T>, T(0), 0));  \
  GIVES(T, aclshmemx_##ENGINE##_atomic_fetch_xor(elements<T>, T(0), 0));
#define ATOMICS(NAME, T)                                                         \
  void atomics_##NAME() {                                                        \
    GIVES(T, aclshmem_##NAME##_atomic_fetch(elements<T>, 0));                    \
    GIVES(void, aclshmem_##NAME##_atomic_inc(elements<T>, 0));                   \
    GIVES(T, aclshmem_##NAME##_atomic_fetch_inc(elements<T>, 0));                \
    GIVES(T, aclshmem_##NAME##_atomic_fetch_add(elements<T>, T(0), 0));          \
    GIVES(T, aclshmem_##NAME##_atomic_compare_swap(elements<T>, T(0), T(0), 0)); \
    GIVES(void, aclshmem_##NAME##_atomic_and(elements<T>, T(0), 0));             \
    GIVES(void, aclshmem_##NAME##_atomic_or(elements<T>, T(0), 0));              \
    GIVES(void, aclshmem_##NAME##_atomic_xor(elements<T>, T(0), 0));             \
    GIVES(T, aclshmem_##NAME##_atomic_fetch_and(elements<T>, T(0), 0));          \
    GIVES(T, aclshmem_##NAME##_atomic_fetch_or(elements<T>, T(0), 0));           \
    GIVES(T, aclshmem_##NAME##_atomic_fetch_xor(elements<T>, T(0), 0));          \
    ENGINE_ATOMICS(mte, T)                                                       \
    ENGINE_ATOMICS(roce, T)                                                      \
    ENGINE_ATOMICS(udma, T)                                                      \
    ENGINE_BITS(roce, T)                                                         \
    ENGINE_BITS(udma, T)                                                         \
  }
ACLSHMEM_ATOMIC_TYPES(ATOMICS)

// Calls of engines: with and without the type of the elements, by pointers and by tensors.
using T = float;
[[maybe_unused]] T* const e = nullptr;
[[maybe_unused]] uint8_t* const bytes = nullptr;
[[maybe_unused]] aclshmemx_team_t* const team = nullptr;
[[maybe_unused]] aclshmemx_submit_state_t batch;
[[maybe_unused]] const aclshmemx_defer_t defer(batch);
[[maybe_unused]] const aclshmemx_submit_t submit(batch);
#define COPIES(CALL, EXTRA)                                                       \
  GIVES(void, aclshmemx_##CALL(e, e, e, 1U, 0 EXTRA, 0U));                        \
  GIVES(void, aclshmemx_##CALL<T>(e, e, e, 1U, 0 EXTRA, 0U, defer));              \
  GIVES(void, aclshmemx_##CALL(global<T>, global<T>, local<T>, 1U, 0 EXTRA, 0U)); \
  GIVES(void, aclshmemx_##CALL<T>(global<T>, global<T>, local<T>, 1U, 0 EXTRA, 0U, submit));
#define COMMA ,
COPIES(roce_put_nbi, )
COPIES(roce_get_nbi, )
COPIES(roce_qp_put_nbi, COMMA 0U)
COPIES(roce_qp_get_nbi, COMMA 0U)
COPIES(udma_put_nbi, )
COPIES(udma_get_nbi, )
COPIES(udma_qp_put_nbi, COMMA 0U)
COPIES(udma_qp_get_nbi, COMMA 0U)
COPIES(udma_relay_put_nbi, COMMA 1)
COPIES(udma_relay_get_nbi, COMMA 1)
GIVES(void, aclshmemx_roce_put_nbi(e, e, e, 1U, 0));
GIVES(void, aclshmemx_roce_get_nbi<T>(global<T>, global<T>, local<T>, 1U, 0));
GIVES(void, aclshmemx_udma_put_nbi<T, PIPE_S>(e, e, e, 1U, 0));
GIVES(void, aclshmemx_udma_get_nbi<T, PIPE_MTE3>(global<T>, global<T>, local<T>, 1U, 0, 0U));
#define SDMA_COPIES(VERB)                                                              \
  GIVES(void, aclshmemx_sdma_##VERB##_nbi(e, e, e, 64U, 1U, 0, 0U));                   \
  GIVES(void, aclshmemx_sdma_##VERB##_nbi(global<T>, global<T>, local<T>, 1U, 0, 0U)); \
  GIVES(void, aclshmemx_sdma_qp_##VERB##_nbi<T>(e, e, e, 64U, 1U, 0, 0U, EVENT_ID0));  \
  GIVES(void, aclshmemx_sdma_qp_##VERB##_nbi<T>(global<T>, global<T>, local<T>, 1U, 0, 0U, 0U));
SDMA_COPIES(put)
SDMA_COPIES(get)
GIVES(void, aclshmemx_udma_put_signal_nbi(e, e, 1U, elements<uint64_t>, uint64_t{1}, 0));
GIVES(void, aclshmemx_udma_put_signal_nbi<T, PIPE_S>(e, e, 1U, elements<uint64_t>, uint64_t{1}, 0, bytes, 0U));
GIVES(void, aclshmemx_udma_qp_put_signal_nbi(e, e, 1U, elements<uint64_t>, uint64_t{1}, 0, 0U));
GIVES(void, aclshmemx_udma_qp_put_signal_nbi(e, e, 1U, elements<uint64_t>, uint64_t{1}, 0, 0U, bytes));
GIVES(void, aclshmemx_roce_quiet(0U, e, 0U));
GIVES(void, aclshmemx_roce_quiet<T>(0U, e, 0U));
GIVES(void, aclshmemx_roce_qp_quiet(0U, 0U, e, 0U));
GIVES(void, aclshmemx_roce_qp_quiet(0U, 0U, local<T>, 0U));
GIVES(void, aclshmemx_udma_quiet(0));
GIVES(void, aclshmemx_udma_qp_quiet(0, 0U));
#define SDMA_ENDS(NAME)                                  \
  GIVES(void, aclshmemx_sdma_##NAME(e, 64U, 0U));        \
  GIVES(void, aclshmemx_sdma_##NAME(local<T>, 0U));      \
  GIVES(void, aclshmemx_sdma_qp_##NAME(e, 64U, 0U, 0U)); \
  GIVES(void, aclshmemx_sdma_qp_##NAME(local<T>, 0U, 0U));
SDMA_ENDS(quiet)
SDMA_ENDS(notify_record)
GIVES(void, aclshmemx_cmo_nbi(e, 1U, ACLSHMEMCMOTYPE::CMO_TYPE_PREFETCH, e, 64U, 0U));
GIVES(void, aclshmemx_cmo_nbi(global<T>, 1U, ACLSHMEMCMOTYPE::CMO_TYPE_FLUSH, local<T>, 0U));
GIVES(void, aclshmemx_cmo_qp_nbi(e, 1U, ACLSHMEMCMOTYPE::CMO_TYPE_PREFETCH, e, 64U, 0U, 0U));
GIVES(void, aclshmemx_cmo_qp_nbi(global<T>, 1U, ACLSHMEMCMOTYPE::CMO_TYPE_PREFETCH, local<T>, 0U, 0U));
GIVES(int, aclshmemx_roce_team_sync(team));
GIVES(int, aclshmemx_roce_team_sync(team, bytes, 0U));
GIVES(int, aclshmemx_roce_sync(team));
GIVES(int, aclshmemx_roce_barrier(team));
GIVES(int, aclshmemx_roce_barrier(team, bytes, 0U));
GIVES(void, aclshmemx_roce_sync_all());
GIVES(void, aclshmemx_roce_sync_all(bytes, 0U));
GIVES(void, aclshmemx_roce_barrier_all());
GIVES(void, aclshmemx_roce_barrier_all(bytes, 0U));

}  // namespace

int main() {
  atomics_int32();
  atomics_int64();
  atomics_uint32();
  atomics_uint64();
  return aclshmem_my_pe() == -1 ? 0 : 1;
}
