// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.8 and 9.10: atomic operations on the memory of a PE.
//
// All are sequentially consistent, for one thing: a PE that waits for the word may be asleep, and wake_parked asks for
// it. On x86 an operation that changes a word costs the same with any order.
#include <bit>

#include "shmem/api/peer.hpp"
#include "shmem/memory/parking.hpp"

using shmem::api::Peer;

namespace {

template <typename T>
[[gnu::always_inline]] inline T* word(const Peer& peer, const T* mine) {
  shmem::api::check_aligned(peer.context, peer.call, mine);
  return reinterpret_cast<T*>(peer.at(mine, sizeof(T)));
}

/// Gives what was in the word before a change, after whoever may be waiting for it has been woken.
template <typename T>
[[gnu::always_inline]] inline T changed(const Peer& peer, T before) {
  shmem::wake_parked(peer.context.job(), peer.pe);
  return before;
}

struct Fetch {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, const T* source) const {
    T value;
    __atomic_load(word(peer, source), &value, __ATOMIC_SEQ_CST);
    return value;
  }
};
struct Swap {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest, T value) const {
    T before;
    __atomic_exchange(word(peer, dest), &value, &before, __ATOMIC_SEQ_CST);
    return changed(peer, before);
  }
};
struct CompareSwap {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest, T cond, T value) const {
    // `cond` becomes what was there if that is something else.
    __atomic_compare_exchange_n(word(peer, dest), &cond, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return changed(peer, cond);
  }
};
struct FetchAdd {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest, T value) const {
    return changed(peer, __atomic_fetch_add(word(peer, dest), value, __ATOMIC_SEQ_CST));
  }
};
struct FetchInc {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest) const {
    return FetchAdd{}(peer, dest, T{1});
  }
};
struct FetchAnd {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest, T value) const {
    return changed(peer, __atomic_fetch_and(word(peer, dest), value, __ATOMIC_SEQ_CST));
  }
};
struct FetchOr {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest, T value) const {
    return changed(peer, __atomic_fetch_or(word(peer, dest), value, __ATOMIC_SEQ_CST));
  }
};
struct FetchXor {
  template <typename T>
  [[gnu::always_inline]] T operator()(const Peer& peer, T* dest, T value) const {
    return changed(peer, __atomic_fetch_xor(word(peer, dest), value, __ATOMIC_SEQ_CST));
  }
};

/// An operation whose result nobody wants.
template <typename Operation>
struct Drop {
  template <typename... Arguments>
  [[gnu::always_inline]] void operator()(const Peer& peer, Arguments... arguments) const {
    Operation{}(peer, arguments...);
  }
};
/// An operation that leaves its result in *fetch. It is complete when the call returns.
template <typename Operation>
struct Keep {
  template <typename T, typename... Arguments>
  [[gnu::always_inline]] void operator()(const Peer& peer, T* fetch, Arguments... arguments) const {
    *fetch = Operation{}(peer, arguments...);
  }
};

}  // namespace

#define SHMEM_DEFINE_EXTENDED(NAME, TYPE)                                                                             \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_atomic_fetch, (const TYPE* source, int pe), Fetch{}, (source))                  \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_fetch_nbi, (TYPE * fetch, const TYPE* source, int pe), Keep<Fetch>{},    \
                         (fetch, source))                                                                             \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_set, (TYPE * dest, TYPE value, int pe), Drop<Swap>{}, (dest, value))     \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_atomic_swap, (TYPE * dest, TYPE value, int pe), Swap{}, (dest, value))          \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_swap_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe), Keep<Swap>{}, \
                         (fetch, dest, value))                                                                        \
  SHMEM_PLAIN_ROUTINE(TYPE, NAME##_fetch, (const TYPE* source, int pe), Fetch{}, (source))                            \
  SHMEM_PLAIN_ROUTINE(void, NAME##_set, (TYPE * dest, TYPE value, int pe), Drop<Swap>{}, (dest, value))               \
  SHMEM_PLAIN_ROUTINE(TYPE, NAME##_swap, (TYPE * dest, TYPE value, int pe), Swap{}, (dest, value))

#define SHMEM_DEFINE_STANDARD(NAME, TYPE)                                                                          \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_atomic_compare_swap, (TYPE * dest, TYPE cond, TYPE value, int pe),           \
                         CompareSwap{}, (dest, cond, value))                                                       \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_compare_swap_nbi,                                                     \
                         (TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe), Keep<CompareSwap>{},          \
                         (fetch, dest, cond, value))                                                               \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_atomic_fetch_inc, (TYPE * dest, int pe), FetchInc{}, (dest))                 \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_fetch_inc_nbi, (TYPE * fetch, TYPE * dest, int pe), Keep<FetchInc>{}, \
                         (fetch, dest))                                                                            \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_inc, (TYPE * dest, int pe), Drop<FetchInc>{}, (dest))                 \
  SHMEM_DEFINE_FETCH_AND_CHANGE(NAME, TYPE, add, FetchAdd)                                                         \
  SHMEM_PLAIN_ROUTINE(TYPE, NAME##_cswap, (TYPE * dest, TYPE cond, TYPE value, int pe), CompareSwap{},             \
                      (dest, cond, value))                                                                         \
  SHMEM_PLAIN_ROUTINE(TYPE, NAME##_finc, (TYPE * dest, int pe), FetchInc{}, (dest))                                \
  SHMEM_PLAIN_ROUTINE(void, NAME##_inc, (TYPE * dest, int pe), Drop<FetchInc>{}, (dest))                           \
  SHMEM_PLAIN_ROUTINE(TYPE, NAME##_fadd, (TYPE * dest, TYPE value, int pe), FetchAdd{}, (dest, value))             \
  SHMEM_PLAIN_ROUTINE(void, NAME##_add, (TYPE * dest, TYPE value, int pe), Drop<FetchAdd>{}, (dest, value))

#define SHMEM_DEFINE_FETCH_AND_CHANGE(NAME, TYPE, VERB, OPERATION)                                                \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_atomic_fetch_##VERB, (TYPE * dest, TYPE value, int pe), OPERATION{},        \
                         (dest, value))                                                                           \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_fetch_##VERB##_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe), \
                         Keep<OPERATION>{}, (fetch, dest, value))                                                 \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_atomic_##VERB, (TYPE * dest, TYPE value, int pe), Drop<OPERATION>{},        \
                         (dest, value))

#define SHMEM_DEFINE_BITWISE(NAME, TYPE)                   \
  SHMEM_DEFINE_FETCH_AND_CHANGE(NAME, TYPE, and, FetchAnd) \
  SHMEM_DEFINE_FETCH_AND_CHANGE(NAME, TYPE, or, FetchOr)   \
  SHMEM_DEFINE_FETCH_AND_CHANGE(NAME, TYPE, xor, FetchXor)

SHMEM_EXTENDED_AMO_TYPES(SHMEM_DEFINE_EXTENDED)
SHMEM_AMO_TYPES(SHMEM_DEFINE_STANDARD)
SHMEM_BITWISE_AMO_TYPES(SHMEM_DEFINE_BITWISE)
