// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.7: atomic operations on the memory of a PE.
//
// All are sequentially consistent because wake_parked, which wakes a PE that sleeps on the word, requires it. On x86 a
// read-modify-write costs the same with any order.
#include "shmem/api/peer.hpp"

using shmem::AtomicOperation;
using shmem::Runtime;
using shmem::api::Peer;
using shmem::api::remote_atomic;
using shmem::api::remote_post;
using shmem::api::Target;

namespace {

// What is done to the word, here or on another node. Each step returns the previous value.

struct FetchStep {
  template <typename T>
  static T apply(const T* word) {
    T value;
    __atomic_load(word, &value, __ATOMIC_SEQ_CST);
    return value;
  }
  template <typename T>
  static T apply_remote(const Peer& peer, const T* word) {
    return remote_atomic(peer, word, AtomicOperation::kFetch);
  }
};
struct CompareSwapStep {
  template <typename T>
  static T apply(T* word, T cond, T value) {
    // On failure `cond` becomes the previous value.
    __atomic_compare_exchange_n(word, &cond, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return cond;
  }
  template <typename T>
  static T apply_remote(const Peer& peer, T* word, T cond, T value) {
    return remote_atomic(peer, word, AtomicOperation::kCompareSwap, value, cond);
  }
};
/// The operations with one operand.
template <AtomicOperation Operation>
struct ChangeStep {
  static constexpr AtomicOperation kOperation = Operation;
  template <typename T>
  static T apply(T* word, T value) {
    if constexpr (Operation == AtomicOperation::kSwap) {
      T before;
      __atomic_exchange(word, &value, &before, __ATOMIC_SEQ_CST);
      return before;
    } else if constexpr (Operation == AtomicOperation::kAdd) {
      return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
    } else if constexpr (Operation == AtomicOperation::kAnd) {
      return __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST);
    } else if constexpr (Operation == AtomicOperation::kOr) {
      return __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST);
    } else {
      static_assert(Operation == AtomicOperation::kXor);
      return __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST);
    }
  }
  template <typename T>
  static T apply_remote(const Peer& peer, T* word, T value) {
    return remote_atomic(peer, word, Operation, value);
  }
};
struct FetchIncStep {
  using Add = ChangeStep<AtomicOperation::kAdd>;
  static constexpr AtomicOperation kOperation = Add::kOperation;
  template <typename T>
  static T apply(T* word) {
    return Add::apply(word, T{1});
  }
  template <typename T>
  static T apply_remote(const Peer& peer, T* word) {
    return Add::apply_remote(peer, word, T{1});
  }
};

/// Applies the step to the PE's word, then wakes threads that wait for it.
template <typename Step, typename T, typename Where, typename... Arguments>
[[gnu::always_inline]] inline auto apply_at(const Where& peer, std::byte* theirs, Arguments... arguments) {
  const auto before = Step::apply(reinterpret_cast<T*>(theirs), arguments...);
  if constexpr (!std::is_same_v<Step, FetchStep>) {
    peer.wake();
  }
  return before;
}

/// The unsigned word with the bits of a T: all operations are the same on it.
template <typename T>
using Word = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

/// For words outside the heap or not aligned. T is a Word, not each type of the interface, since this is long.
template <typename Step, typename T, typename... Arguments>
[[gnu::noinline]] T apply_elsewhere(const Runtime& runtime, const char* call, int pe, T* mine, Arguments... arguments) {
  const Peer peer(Target{runtime, call, pe});
  peer.count(shmem::CallKind::kAtomic, sizeof(T));
  shmem::api::check_aligned(runtime, call, mine);
  if (peer.is_remote()) {
    return Step::apply_remote(peer, mine, arguments...);
  }
  shmem::api::progress(runtime);
  return apply_at<Step, T>(peer, peer.at(mine, sizeof(T)), arguments...);
}

/// The body of each routine. Always inlined; the rare case is a function called at the end, so that nothing is saved on
/// the stack for it.
template <typename Step>
struct Apply {
  template <typename T, typename... Arguments>
  [[gnu::always_inline]] auto operator()(const Target& target, T* mine, Arguments... arguments) const {
    if (!Target::in_heap(mine, sizeof(T)) || reinterpret_cast<std::uintptr_t>(mine) % sizeof(T) != 0) [[unlikely]] {
      const auto word = reinterpret_cast<Word<T>*>(const_cast<std::remove_const_t<T>*>(mine));
      return std::bit_cast<std::remove_const_t<T>>(
          apply_elsewhere<Step>(target.runtime, target.call, target.pe, word, std::bit_cast<Word<T>>(arguments)...));
    }
    return apply_at<Step, T>(target, target.in_its_heap(mine), arguments...);
  }
};
using Fetch = Apply<FetchStep>;
using Swap = Apply<ChangeStep<AtomicOperation::kSwap>>;
using CompareSwap = Apply<CompareSwapStep>;
using FetchAdd = Apply<ChangeStep<AtomicOperation::kAdd>>;
using FetchInc = Apply<FetchIncStep>;
using FetchAnd = Apply<ChangeStep<AtomicOperation::kAnd>>;
using FetchOr = Apply<ChangeStep<AtomicOperation::kOr>>;
using FetchXor = Apply<ChangeStep<AtomicOperation::kXor>>;

/// A step whose result is not used: on another node it is only started, and completes with quiet().
template <typename Step>
struct Posted : Step {
  template <typename T>
  static T apply_remote(const Peer& peer, T* word, T value = T{1}) {
    remote_post(peer, word, Step::kOperation, value);
    return {};
  }
};
template <typename Operation>
struct Drop;
template <typename Step>
struct Drop<Apply<Step>> {
  template <typename... Arguments>
  [[gnu::always_inline]] void operator()(const Target& target, Arguments... arguments) const {
    Apply<Posted<Step>>{}(target, arguments...);
  }
};
/// An operation that leaves its result in *fetch. It is complete when the call returns.
template <typename Operation>
struct Keep {
  template <typename T, typename... Arguments>
  [[gnu::always_inline]] void operator()(const Target& target, T* fetch, Arguments... arguments) const {
    target.check_own(fetch, sizeof *fetch);
    *fetch = Operation{}(target, arguments...);
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
SHMEM_SIGNED_BITWISE_AMO_TYPES(SHMEM_DEFINE_BITWISE)
