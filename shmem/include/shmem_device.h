/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls for kernels. A kernel is a function that shmemx_launch (shmemx.h) runs on every core of this PE at once; a core
 * is a thread.
 *
 *  - The calls find out by themselves on which core they are; the shmemx_core_* forms take the core that the kernel was
 *    given, and end the job if it is not the caller's.
 *  - Names that the host has too (shmem_barrier_all, shmem_team_sync, shmem_quiet, shmem_my_pe, ...) are not declared
 *    again: called by a core they are the core's, called by any other thread they are the host's. Barriers and syncs of
 *    cores are for all cores of all members: the cores of a PE synchronise, then the PEs, then the cores again.
 *    shmem_quiet and shmem_fence are for the calling core's own puts and signals.
 *  - Calls for cores end the job, with a message, outside of kernels. So does an invalid team, PE, comparison or
 *    address.
 *  - Every wait ends when the job does, when another core's kernel has failed, and after SHMEM_BARRIER_TIMEOUT. On a
 *    core it then returns SIZE_MAX for an index, 0 for a number, or the last value; the core keeps the error, which
 *    shmemx_launch returns, and all its later waits end at once. On the host it ends the job.
 *  - aclshmem.h has Ascend's names for all of this.
 *
 * C programs have the calls; the typed and overloaded forms are for C++, from C++11 on.
 */
#ifndef SHMEM_SHMEM_DEVICE_H
#define SHMEM_SHMEM_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"
#include "shmemx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The core ---- */

/* The core that the calling thread is; NULL outside of kernels. Owned by the library during the kernel. */
SHMEM_API shmemx_core_t* shmemx_current_core(void) SHMEM_NOEXCEPT;
/* Ends the job with a message that names `call` if `core` is not the calling thread's. */
SHMEM_API void shmemx_core_check(const shmemx_core_t* core, const char* call) SHMEM_NOEXCEPT;

/* A word for the program's own use. The host's value goes to every core of each kernel launched from then on; 0 at
 * first. A core's value is its own, until the kernel ends. (On Ascend processors it is the base of the hardware's
 * synchronisation between cores, which the host requests and kernels set; cores need none here.) */
SHMEM_API uint64_t shmemx_get_ffts_config(void) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_set_ffts_config(uint64_t config) SHMEM_NOEXCEPT;

/* ---- Barriers ---- */

/* A PE can be in this many teams. */
#define SHMEMX_MAX_TEAMS 4096

/* As shmemx_core_barrier, but for this one barrier by the algorithm that is named: "npu_v1", "npu_v2", "npu_v3" and the
 * other names of SHMEM_BARRIER_ALGORITHM that are algorithms (shmem_info lists them). All cores of all members name the
 * same one. It never goes through the device, is not in the team's statistics, and uses the words of
 * shmemx_team_sync_pool with the team's counter, which is the number of the last such barrier: a program that writes
 * barriers on the same words continues these numbers. If the members are on several nodes, the nodes synchronise by the
 * algorithm that is named ("dissemination" is "npu_v1" there), the members of a node arrive by the team's own, and the
 * barrier is one of the team's: in its statistics, on no words of a pool. Errors: as shmemx_core_barrier; -EINVAL no
 * such algorithm. After another error the words of the team, on several nodes the team, are unusable. */
SHMEM_API int shmemx_core_barrier_by(shmemx_core_t* core, shmem_team_t team, const char* algorithm) SHMEM_NOEXCEPT;
/* As shmemx_core_barrier without shmem_quiet: completes no puts. */
SHMEM_API int shmemx_core_team_sync(shmemx_core_t* core, shmem_team_t team) SHMEM_NOEXCEPT;
/* shmemx_team_barrier and shmem_barrier_all for cores only. (Ascend's have two kinds of cores, these are for the vector
 * cores. There is one kind here.) */
SHMEM_API void shmemx_barrier_vec(shmem_team_t team) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_barrier_all_vec(void) SHMEM_NOEXCEPT;

/*
 * Collective over the PEs of a list, and in a kernel over all of their cores: shmem_quiet, then waits for all. The
 * list has `count` different numbers of `team`, the caller's among them, and is the same on all of its PEs but for the
 * order. Lists may differ from call to call and overlap; PEs that are in several lists come to them in one order, as
 * they would to teams. No team is made, and nothing is to be given back. _vec: for cores only.
 *
 * Errors, with a message: -EINVAL no such team, or the list (nothing was done then, and others of the list wait), or
 * another PE came to a barrier with another list (noticed mostly); -ETIMEDOUT; -EOWNERDEAD a PE of the list has died;
 * -ECANCELED the job was ended. After all but the first two this PE can use no more lists with PEs of this one.
 */
SHMEM_API int shmemx_partial_barrier(shmem_team_t team, const uint32_t* pes, uint32_t count) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_partial_barrier_vec(shmem_team_t team, const uint32_t* pes, uint32_t count) SHMEM_NOEXCEPT;

/* ---- The cache of a core ----
 *
 * "Clean and invalidate": writes lines back to memory if they are changed, and drops them; of one address, of a range,
 * of everything. Processors that run Linux keep the caches of their cores coherent, so no line is written back or
 * dropped here: it would cost a hundred times more without a visible effect. It only orders: earlier stores of the
 * core are visible before later ones, and later loads read memory again, so that polling a plain variable with it
 * works. A portable kernel calls it for memory that is not coherent. */
SHMEM_API void shmemx_dcci(const void* address) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_dcci_range(const void* address, size_t bytes) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_dcci_all(void) SHMEM_NOEXCEPT;

/* ---- Signals ---- */

/* shmem_signal_set or shmem_signal_add, by `sig_op` (SHMEM_SIGNAL_*); the same for signals of 32 bits. */
SHMEM_API void shmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_signal32_op(int32_t* sig_addr, int32_t signal, int sig_op, int pe) SHMEM_NOEXCEPT;

/* ---- Words of 32 bits on this node ----
 *
 * For barriers and signals that a kernel makes of plain words. `word` is an aligned address in the symmetric heap of
 * any PE of this node, as this PE addresses it (shmem_ptr), the beginning of a word of a pool (see below), or any other
 * memory of this process. Several threads may set a word; the last one wins. */

/* Stores `value`; earlier stores are visible to a thread that sees it. Wakes waiters. */
SHMEM_API void shmemx_word32_set(int32_t* word, int32_t value) SHMEM_NOEXCEPT;
/* Waits until the word is `value` or, by a difference of up to 2^31 - 1, later than that: a number that only grows may
 * wrap around, and a peer that is ahead has also arrived. Returns the last value seen. Ends early as every wait. */
SHMEM_API int32_t shmemx_word32_wait_at_least(const int32_t* word, int32_t value) SHMEM_NOEXCEPT;

/* ---- Flags between the cores of this PE ----
 *
 * Each core has SHMEMX_CORE_FLAGS flags, which count and are 0 when a kernel begins. A core takes one count from its
 * flag each time it waits for it. Counts come from cores that set the flag of this number, by the mode of the setter:
 *   SHMEMX_FLAG_ALL      each core gets one when all cores have set it
 *   SHMEMX_FLAG_PAIR     the cores 2b and 2b + 1 get one when both have set it
 *   SHMEMX_FLAG_PARTNER  the other core of the pair gets one */
#define SHMEMX_CORE_FLAGS 16
#define SHMEMX_FLAG_ALL 0
#define SHMEMX_FLAG_PAIR 1
#define SHMEMX_FLAG_PARTNER 2
/* Earlier stores of the core are visible to a core that gets the count. Errors: -EINVAL no such mode or flag; -ENOMEM.
 */
SHMEM_API int shmemx_core_flag_set(shmemx_core_t* core, int mode, int flag) SHMEM_NOEXCEPT;
/* Waits for a count and takes it. Errors: as shmemx_core_sync; those of shmemx_core_flag_set. */
SHMEM_API int shmemx_core_flag_wait(shmemx_core_t* core, int flag) SHMEM_NOEXCEPT;

/* ---- Words of this PE: waiting for them, and testing them ---- */

#define SHMEMX_FLOAT 0
#define SHMEMX_INT8 1
#define SHMEMX_INT16 2
#define SHMEMX_INT32 3
#define SHMEMX_INT64 4
#define SHMEMX_UINT8 5
#define SHMEMX_UINT16 6
#define SHMEMX_UINT32 7
#define SHMEMX_UINT64 8

#define SHMEMX_ALL 0
#define SHMEMX_ANY 1
#define SHMEMX_SOME 2
/* Or'ed to these: the elements may be those of another PE of this node, by the address that shmem_ptr gives for them.
 * A change of theirs does not wake this PE; it looks once a millisecond. */
#define SHMEMX_MAPPED 16

/* Elements and the comparison. Nothing is kept after the call. */
typedef struct shmemx_elements_t {
  const char* call;   /* for messages */
  void* elements;     /* symmetric */
  int type;           /* SHMEMX_FLOAT ... */
  size_t count;       /* elements */
  const int* status;  /* NULL, or for each element: not 0 skips it */
  int cmp;            /* SHMEM_CMP_* */
  const void* values; /* of the type: one, or one for each element */
  int value_for_each; /* 1: one for each */
} shmemx_elements_t;

/* Waits until all, any or some of the elements that are not skipped satisfy the comparison; earlier stores of other
 * PEs are visible then. SHMEMX_ALL: 1. SHMEMX_ANY: the index of one of them. SHMEMX_SOME: their number, and their
 * indices in `indices`, which has room for all; else `indices` may be NULL. If all are skipped it returns at once: 1,
 * SIZE_MAX (not an index), 0. */
SHMEM_API size_t shmemx_wait_elements(const shmemx_elements_t* elements, int which, size_t* indices) SHMEM_NOEXCEPT;
/* The same without waiting: 0, SIZE_MAX and 0 if it is not so. */
SHMEM_API size_t shmemx_test_elements(const shmemx_elements_t* elements, int which, size_t* indices) SHMEM_NOEXCEPT;

/* ---- Words for barriers ----
 *
 * Words for barriers that a program writes itself; of the library's own, shmemx_core_barrier_by uses those of a team.
 * They are zero at first, those of a team when it is made, those of the cores also after a kernel that failed. Change
 * them by shmemx_sync_set only, which wakes waiters, or shmemx_word32_set. */
typedef struct shmemx_sync_word_t {
  uint64_t value;
  char reserved[56]; /* a cache line each */
} __attribute__((aligned(64))) shmemx_sync_word_t;

/* Word r of core c of this PE is pool[c * SHMEMX_CORE_POOL_ROUNDS + r], for 1024 cores; and one word that counts.
 * The address is the same on all cores. For cores only. */
#define SHMEMX_CORE_POOL_ROUNDS 10
#define SHMEMX_CORE_POOL_CORES 1024
SHMEM_API shmemx_sync_word_t* shmemx_core_sync_pool(const shmemx_core_t* core) SHMEM_NOEXCEPT;
SHMEM_API shmemx_sync_word_t* shmemx_core_sync_counter(const shmemx_core_t* core) SHMEM_NOEXCEPT;
/* A barrier of the cores of this PE on these words (dissemination), as Ascend SHMEM has where the hardware has none.
 * shmemx_core_sync is faster. Errors: as shmemx_core_sync; -EINVAL more than SHMEMX_CORE_POOL_CORES cores. */
SHMEM_API int shmemx_core_sync_in_memory(shmemx_core_t* core) SHMEM_NOEXCEPT;

/* Of PE `pe` of the team, as this PE addresses them: SHMEMX_TEAM_POOL_WORDS words, and one that counts. NULL if there
 * is no such team or PE, or the PE is on another node. */
#define SHMEMX_TEAM_POOL_WORDS 40
SHMEM_API shmemx_sync_word_t* shmemx_team_sync_pool(shmem_team_t team, int pe) SHMEM_NOEXCEPT;
SHMEM_API shmemx_sync_word_t* shmemx_team_sync_counter(shmem_team_t team, int pe) SHMEM_NOEXCEPT;

/* Stores `value`; earlier stores are visible to a thread that sees it. */
SHMEM_API void shmemx_sync_set(shmemx_sync_word_t* word, uint64_t value) SHMEM_NOEXCEPT;
/* Waits until the word compares so. Errors: as shmemx_core_sync; on the host a wait that fails ends the job. */
SHMEM_API int shmemx_sync_wait_until(shmemx_sync_word_t* word, int cmp, uint64_t value) SHMEM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */

#include <type_traits>

#ifndef SHMEM_NO_OVERLOADS
/* Ascend's signals of 32 bits, chosen by the type. */
inline void shmemx_signal_op(int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept {
  shmemx_signal32_op(sig_addr, signal, sig_op, pe);
}
#endif

/* ---- With the core in hand ---- */
inline int shmemx_core_barrier_all(shmemx_core_t* core) noexcept {
  return shmemx_core_barrier(core, SHMEM_TEAM_WORLD);
}
inline int shmemx_core_sync_all(shmemx_core_t* core) noexcept {
  return shmemx_core_team_sync(core, SHMEM_TEAM_WORLD);
}
inline int shmemx_core_partial_barrier(shmemx_core_t* core, shmem_team_t team, const uint32_t* pes,
                                       uint32_t count) noexcept {
  shmemx_core_check(core, "shmemx_core_partial_barrier");
  return shmemx_partial_barrier(team, pes, count);
}
inline void shmemx_core_quiet(const shmemx_core_t* core) noexcept {
  shmemx_core_check(core, "shmemx_core_quiet");
  shmem_quiet();
}
inline void shmemx_core_fence(const shmemx_core_t* core) noexcept {
  shmemx_core_check(core, "shmemx_core_fence");
  shmem_fence();
}
inline uint64_t shmemx_core_get_ffts_config(const shmemx_core_t* core) noexcept {
  shmemx_core_check(core, "shmemx_core_get_ffts_config");
  return shmemx_get_ffts_config();
}
inline void shmemx_core_signal_op(const shmemx_core_t* core, uint64_t* sig_addr, uint64_t signal, int sig_op,
                                  int pe) noexcept {
  shmemx_core_check(core, "shmemx_core_signal_op");
  shmemx_signal_op(sig_addr, signal, sig_op, pe);
}
inline void shmemx_core_signal_op(const shmemx_core_t* core, int32_t* sig_addr, int32_t signal, int sig_op,
                                  int pe) noexcept {
  shmemx_core_check(core, "shmemx_core_signal_op");
  shmemx_signal32_op(sig_addr, signal, sig_op, pe);
}
inline uint64_t shmemx_core_signal_wait_until(const shmemx_core_t* core, uint64_t* sig_addr, int cmp,
                                              uint64_t value) noexcept {
  shmemx_core_check(core, "shmemx_core_signal_wait_until");
  return (shmem_signal_wait_until)(sig_addr, cmp, value);
}
inline int32_t shmemx_core_signal_wait_until(const shmemx_core_t* core, int32_t* sig_addr, int cmp,
                                             int32_t value) noexcept {
  shmemx_core_check(core, "shmemx_core_signal_wait_until");
  return shmemx_signal32_wait_until(sig_addr, cmp, value);
}

/* ---- Words and arrays of them, by their type ----
 *
 * shmemx_wait_elements and shmemx_test_elements for T of float, int8_t ... int64_t, uint8_t ... uint64_t,
 * char: `elements` and `element` are symmetric words of this PE; those whose status is not 0 are skipped, none if
 * `status` is NULL. _vector: a value for each element. Each has a form shmemx_core_... that takes the core first. */

template <typename T>
constexpr int shmemi_type_of() {
  static_assert(std::is_same<T, float>::value || (std::is_integral<T>::value && sizeof(T) <= 8),
                "a type of SHMEMX_FLOAT ...");
  return std::is_same<T, float>::value
             ? SHMEMX_FLOAT
             : (std::is_signed<T>::value ? SHMEMX_INT8 : SHMEMX_UINT8) + (sizeof(T) == 1   ? 0
                                                                          : sizeof(T) == 2 ? 1
                                                                          : sizeof(T) == 4 ? 2
                                                                                           : 3);
}
/* T, not to be found out from an argument. */
template <typename T>
struct shmemi_given {
  typedef T type;
};

/* Waits for or looks at `count` words, in the name of `call`; `each`: as many values. */
template <typename T>
size_t shmemi_wait(const char* call, T* elements, size_t count, const int* status, int cmp, const T* values, bool each,
                   int which, size_t* indices = nullptr) noexcept {
  const shmemx_elements_t all{call, elements, shmemi_type_of<T>(), count, status, cmp, values, each ? 1 : 0};
  return shmemx_wait_elements(&all, which, indices);
}
template <typename T>
size_t shmemi_test(const char* call, T* elements, size_t count, const int* status, int cmp, const T* values, bool each,
                   int which, size_t* indices = nullptr) noexcept {
  const shmemx_elements_t all{call, elements, shmemi_type_of<T>(), count, status, cmp, values, each ? 1 : 0};
  return shmemx_test_elements(&all, which, indices);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): types and names take none */
/* The family `prefix`_wait, `prefix`_wait_until, ... as templates or for one type T: `head` stands before each. */
#define SHMEMI_WAIT_FAMILY(head, prefix, T, V)                                                                         \
  /* Until it is not `value` any more. */                                                                              \
  head inline void prefix##_wait(T* element, V value) noexcept {                                                       \
    const T with = value;                                                                                              \
    shmemi_wait(#prefix "_wait", element, 1, nullptr, SHMEM_CMP_NE, &with, false, SHMEMX_ALL);                         \
  }                                                                                                                    \
  head inline void prefix##_wait_until(T* element, int cmp, V value) noexcept {                                        \
    const T with = value;                                                                                              \
    shmemi_wait(#prefix "_wait_until", element, 1, nullptr, cmp, &with, false, SHMEMX_ALL);                            \
  }                                                                                                                    \
  head inline void prefix##_wait_until_all(T* elements, size_t count, const int* status, int cmp, V value) noexcept {  \
    const T with = value;                                                                                              \
    shmemi_wait(#prefix "_wait_until_all", elements, count, status, cmp, &with, false, SHMEMX_ALL);                    \
  }                                                                                                                    \
  /* The index of one of them, or SIZE_MAX. */                                                                         \
  head inline size_t prefix##_wait_until_any(T* elements, size_t count, const int* status, int cmp,                    \
                                             V value) noexcept {                                                       \
    const T with = value;                                                                                              \
    return shmemi_wait(#prefix "_wait_until_any", elements, count, status, cmp, &with, false, SHMEMX_ANY);             \
  }                                                                                                                    \
  /* How many, and which. */                                                                                           \
  head inline size_t prefix##_wait_until_some(T* elements, size_t count, size_t* indices, const int* status, int cmp,  \
                                              V value) noexcept {                                                      \
    const T with = value;                                                                                              \
    return shmemi_wait(#prefix "_wait_until_some", elements, count, status, cmp, &with, false, SHMEMX_SOME, indices);  \
  }                                                                                                                    \
  head inline void prefix##_wait_until_all_vector(T* elements, size_t count, const int* status, int cmp,               \
                                                  const T* values) noexcept {                                          \
    shmemi_wait(#prefix "_wait_until_all_vector", elements, count, status, cmp, values, true, SHMEMX_ALL);             \
  }                                                                                                                    \
  head inline size_t prefix##_wait_until_any_vector(T* elements, size_t count, const int* status, int cmp,             \
                                                    const T* values) noexcept {                                        \
    return shmemi_wait(#prefix "_wait_until_any_vector", elements, count, status, cmp, values, true, SHMEMX_ANY);      \
  }                                                                                                                    \
  head inline size_t prefix##_wait_until_some_vector(T* elements, size_t count, size_t* indices, const int* status,    \
                                                     int cmp, const T* values) noexcept {                              \
    return shmemi_wait(#prefix "_wait_until_some_vector", elements, count, status, cmp, values, true, SHMEMX_SOME,     \
                       indices);                                                                                       \
  }                                                                                                                    \
  /* 1 or 0, an index or SIZE_MAX, how many: without waiting. */                                                       \
  head inline int prefix##_test(T* element, int cmp, V value) noexcept {                                               \
    const T with = value;                                                                                              \
    return static_cast<int>(shmemi_test(#prefix "_test", element, 1, nullptr, cmp, &with, false, SHMEMX_ALL));         \
  }                                                                                                                    \
  head inline int prefix##_test_all(T* elements, size_t count, const int* status, int cmp, V value) noexcept {         \
    const T with = value;                                                                                              \
    return static_cast<int>(shmemi_test(#prefix "_test_all", elements, count, status, cmp, &with, false, SHMEMX_ALL)); \
  }                                                                                                                    \
  head inline size_t prefix##_test_any(T* elements, size_t count, const int* status, int cmp, V value) noexcept {      \
    const T with = value;                                                                                              \
    return shmemi_test(#prefix "_test_any", elements, count, status, cmp, &with, false, SHMEMX_ANY);                   \
  }                                                                                                                    \
  head inline size_t prefix##_test_some(T* elements, size_t count, size_t* indices, const int* status, int cmp,        \
                                        V value) noexcept {                                                            \
    const T with = value;                                                                                              \
    return shmemi_test(#prefix "_test_some", elements, count, status, cmp, &with, false, SHMEMX_SOME, indices);        \
  }                                                                                                                    \
  head inline int prefix##_test_all_vector(T* elements, size_t count, const int* status, int cmp,                      \
                                           const T* values) noexcept {                                                 \
    return static_cast<int>(                                                                                           \
        shmemi_test(#prefix "_test_all_vector", elements, count, status, cmp, values, true, SHMEMX_ALL));              \
  }                                                                                                                    \
  head inline size_t prefix##_test_any_vector(T* elements, size_t count, const int* status, int cmp,                   \
                                              const T* values) noexcept {                                              \
    return shmemi_test(#prefix "_test_any_vector", elements, count, status, cmp, values, true, SHMEMX_ANY);            \
  }                                                                                                                    \
  head inline size_t prefix##_test_some_vector(T* elements, size_t count, size_t* indices, const int* status, int cmp, \
                                               const T* values) noexcept {                                             \
    return shmemi_test(#prefix "_test_some_vector", elements, count, status, cmp, values, true, SHMEMX_SOME, indices); \
  }
/* NOLINTEND(bugprone-macro-parentheses) */
SHMEMI_WAIT_FAMILY(template <typename T>, shmemx, T, typename shmemi_given<T>::type)

#define SHMEMI_ON_CORE(name)                                                                               \
  template <typename... Arguments>                                                                         \
  inline auto shmemx_core_##name(const shmemx_core_t* core,                                                \
                                 Arguments... arguments) noexcept->decltype(shmemx_##name(arguments...)) { \
    shmemx_core_check(core, "shmemx_core_" #name);                                                         \
    return shmemx_##name(arguments...);                                                                    \
  }
SHMEMI_ON_CORE(wait)
SHMEMI_ON_CORE(wait_until)
SHMEMI_ON_CORE(wait_until_all)
SHMEMI_ON_CORE(wait_until_any)
SHMEMI_ON_CORE(wait_until_some)
SHMEMI_ON_CORE(wait_until_all_vector)
SHMEMI_ON_CORE(wait_until_any_vector)
SHMEMI_ON_CORE(wait_until_some_vector)
SHMEMI_ON_CORE(test)
SHMEMI_ON_CORE(test_all)
SHMEMI_ON_CORE(test_any)
SHMEMI_ON_CORE(test_some)
SHMEMI_ON_CORE(test_all_vector)
SHMEMI_ON_CORE(test_any_vector)
SHMEMI_ON_CORE(test_some_vector)
#undef SHMEMI_ON_CORE

#endif /* __cplusplus */

#endif
