/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSHMEM's generic names in C11: shmem_put(dest, ...) is shmem_int_put(dest, ...) if dest is an int*, and
 * shmem_put(ctx, dest, ...) is shmem_ctx_int_put. Included by shmem.h.
 *
 * A name is looked up by the type of its first argument, or its second if the first is a context (or, of collectives,
 * a team). An argument of another type than those that the routine has fails a static assertion that names the routine.
 */
#ifndef SHMEM_SHMEM_GENERIC_H
#define SHMEM_SHMEM_GENERIC_H

#include "shmem_context.h"
#include "shmem_types.h"

struct shmem_no_such_type;
void shmem_no_such_type(struct shmem_no_such_type*); /* nowhere defined */

#define SHMEM_FIRST(a, ...) (a)
#define SHMEM_SECOND(a, b, ...) (b)
/* The call of `routine`, which was selected by a type; refused if that has none. */
#define SHMEM_CALL(NAME, routine, ...)                                                                 \
  ((void)sizeof(struct {                                                                               \
     _Static_assert(_Generic((routine), void (*)(struct shmem_no_such_type*) : 0, default : 1),        \
                    "shmem_" #NAME " has no form for an argument of this type (see its manual page)"); \
     int unused;                                                                                       \
   }),                                                                                                 \
   (routine)(__VA_ARGS__))
#define SHMEM_SELECT(argument, cases) _Generic(argument cases, default : shmem_no_such_type)
#define SHMEM_PICK(LIST, NAME, ...)                                                                         \
  SHMEM_CALL(NAME,                                                                                          \
             _Generic(SHMEM_FIRST(__VA_ARGS__, 0), shmem_ctx_t                                              \
                      : SHMEM_SELECT(SHMEM_SECOND(__VA_ARGS__, 0, 0), LIST(SHMEM_CTX_CASE_##NAME)), default \
                      : SHMEM_SELECT(SHMEM_FIRST(__VA_ARGS__, 0), LIST(SHMEM_CASE_##NAME))),                \
             __VA_ARGS__)
#define SHMEM_PICK_BY_FIRST(LIST, NAME, ...) \
  SHMEM_CALL(NAME, SHMEM_SELECT(SHMEM_FIRST(__VA_ARGS__, 0), LIST(SHMEM_CASE_##NAME)), __VA_ARGS__)
#define SHMEM_PICK_BY_SECOND(LIST, NAME, ...) \
  SHMEM_CALL(NAME, SHMEM_SELECT(SHMEM_SECOND(__VA_ARGS__, 0, 0), LIST(SHMEM_CASE_##NAME)), __VA_ARGS__)

/* Remote memory access */
#define SHMEM_CASE_put(NAME, TYPE) , TYPE* : shmem_##NAME##_put
#define SHMEM_CTX_CASE_put(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_put
#define shmem_put(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, put, __VA_ARGS__)
#define SHMEM_CASE_p(NAME, TYPE) , TYPE* : shmem_##NAME##_p
#define SHMEM_CTX_CASE_p(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_p
#define shmem_p(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, p, __VA_ARGS__)
#define SHMEM_CASE_iput(NAME, TYPE) , TYPE* : shmem_##NAME##_iput
#define SHMEM_CTX_CASE_iput(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_iput
#define shmem_iput(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, iput, __VA_ARGS__)
#define SHMEM_CASE_ibput(NAME, TYPE) , TYPE* : shmem_##NAME##_ibput
#define SHMEM_CTX_CASE_ibput(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_ibput
#define shmem_ibput(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, ibput, __VA_ARGS__)
#define SHMEM_CASE_get(NAME, TYPE) , TYPE* : shmem_##NAME##_get
#define SHMEM_CTX_CASE_get(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_get
#define shmem_get(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, get, __VA_ARGS__)
#define SHMEM_CASE_iget(NAME, TYPE) , TYPE* : shmem_##NAME##_iget
#define SHMEM_CTX_CASE_iget(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_iget
#define shmem_iget(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, iget, __VA_ARGS__)
#define SHMEM_CASE_ibget(NAME, TYPE) , TYPE* : shmem_##NAME##_ibget
#define SHMEM_CTX_CASE_ibget(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_ibget
#define shmem_ibget(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, ibget, __VA_ARGS__)
#define SHMEM_CASE_put_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_put_nbi
#define SHMEM_CTX_CASE_put_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_put_nbi
#define shmem_put_nbi(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, put_nbi, __VA_ARGS__)
#define SHMEM_CASE_get_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_get_nbi
#define SHMEM_CTX_CASE_get_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_get_nbi
#define shmem_get_nbi(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, get_nbi, __VA_ARGS__)
#define SHMEM_CASE_put_signal(NAME, TYPE) , TYPE* : shmem_##NAME##_put_signal
#define SHMEM_CTX_CASE_put_signal(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_put_signal
#define shmem_put_signal(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, put_signal, __VA_ARGS__)
#define SHMEM_CASE_put_signal_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_put_signal_nbi
#define SHMEM_CTX_CASE_put_signal_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_put_signal_nbi
#define shmem_put_signal_nbi(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, put_signal_nbi, __VA_ARGS__)

/* Signals: of one type, with a context or without */
#define SHMEM_WITH_OR_WITHOUT_CTX(with, without, ...) \
  _Generic(SHMEM_FIRST(__VA_ARGS__, 0), shmem_ctx_t : with, default : without)(__VA_ARGS__)
#define shmem_signal_add(...) SHMEM_WITH_OR_WITHOUT_CTX(shmem_ctx_signal_add, (shmem_signal_add), __VA_ARGS__)
#define shmem_signal_set(...) SHMEM_WITH_OR_WITHOUT_CTX(shmem_ctx_signal_set, (shmem_signal_set), __VA_ARGS__)

/* The source is what the type is looked up by */
#define SHMEM_CASE_g(NAME, TYPE) , TYPE* : shmem_##NAME##_g, const TYPE* : shmem_##NAME##_g
#define SHMEM_CTX_CASE_g(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_g, const TYPE* : shmem_ctx_##NAME##_g
#define shmem_g(...) SHMEM_PICK(SHMEM_RMA_BASIC_TYPES, g, __VA_ARGS__)

/* Atomics */
#define SHMEM_CASE_atomic_set(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_set
#define SHMEM_CTX_CASE_atomic_set(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_set
#define shmem_atomic_set(...) SHMEM_PICK(SHMEM_EXTENDED_AMO_BASIC_TYPES, atomic_set, __VA_ARGS__)
#define SHMEM_CASE_atomic_swap(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_swap
#define SHMEM_CTX_CASE_atomic_swap(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_swap
#define shmem_atomic_swap(...) SHMEM_PICK(SHMEM_EXTENDED_AMO_BASIC_TYPES, atomic_swap, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_nbi
#define SHMEM_CTX_CASE_atomic_fetch_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_nbi
#define shmem_atomic_fetch_nbi(...) SHMEM_PICK(SHMEM_EXTENDED_AMO_BASIC_TYPES, atomic_fetch_nbi, __VA_ARGS__)
#define SHMEM_CASE_atomic_swap_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_swap_nbi
#define SHMEM_CTX_CASE_atomic_swap_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_swap_nbi
#define shmem_atomic_swap_nbi(...) SHMEM_PICK(SHMEM_EXTENDED_AMO_BASIC_TYPES, atomic_swap_nbi, __VA_ARGS__)

/* The source again */
#define SHMEM_CASE_atomic_fetch(NAME, TYPE) \
  , TYPE* : shmem_##NAME##_atomic_fetch, const TYPE* : shmem_##NAME##_atomic_fetch
#define SHMEM_CTX_CASE_atomic_fetch(NAME, TYPE) \
  , TYPE* : shmem_ctx_##NAME##_atomic_fetch, const TYPE* : shmem_ctx_##NAME##_atomic_fetch
#define shmem_atomic_fetch(...) SHMEM_PICK(SHMEM_EXTENDED_AMO_BASIC_TYPES, atomic_fetch, __VA_ARGS__)

/* Those that add */
#define SHMEM_CASE_atomic_compare_swap(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_compare_swap
#define SHMEM_CTX_CASE_atomic_compare_swap(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_compare_swap
#define shmem_atomic_compare_swap(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_compare_swap, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_inc(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_inc
#define SHMEM_CTX_CASE_atomic_fetch_inc(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_inc
#define shmem_atomic_fetch_inc(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_fetch_inc, __VA_ARGS__)
#define SHMEM_CASE_atomic_inc(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_inc
#define SHMEM_CTX_CASE_atomic_inc(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_inc
#define shmem_atomic_inc(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_inc, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_add(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_add
#define SHMEM_CTX_CASE_atomic_fetch_add(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_add
#define shmem_atomic_fetch_add(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_fetch_add, __VA_ARGS__)
#define SHMEM_CASE_atomic_add(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_add
#define SHMEM_CTX_CASE_atomic_add(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_add
#define shmem_atomic_add(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_add, __VA_ARGS__)
#define SHMEM_CASE_atomic_compare_swap_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_compare_swap_nbi
#define SHMEM_CTX_CASE_atomic_compare_swap_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_compare_swap_nbi
#define shmem_atomic_compare_swap_nbi(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_compare_swap_nbi, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_inc_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_inc_nbi
#define SHMEM_CTX_CASE_atomic_fetch_inc_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_inc_nbi
#define shmem_atomic_fetch_inc_nbi(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_fetch_inc_nbi, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_add_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_add_nbi
#define SHMEM_CTX_CASE_atomic_fetch_add_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_add_nbi
#define shmem_atomic_fetch_add_nbi(...) SHMEM_PICK(SHMEM_AMO_BASIC_TYPES, atomic_fetch_add_nbi, __VA_ARGS__)

/* Those on bits */
#define SHMEM_CASE_atomic_fetch_and(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_and
#define SHMEM_CTX_CASE_atomic_fetch_and(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_and
#define shmem_atomic_fetch_and(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_fetch_and, __VA_ARGS__)
#define SHMEM_CASE_atomic_and(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_and
#define SHMEM_CTX_CASE_atomic_and(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_and
#define shmem_atomic_and(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_and, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_or(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_or
#define SHMEM_CTX_CASE_atomic_fetch_or(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_or
#define shmem_atomic_fetch_or(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_fetch_or, __VA_ARGS__)
#define SHMEM_CASE_atomic_or(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_or
#define SHMEM_CTX_CASE_atomic_or(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_or
#define shmem_atomic_or(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_or, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_xor(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_xor
#define SHMEM_CTX_CASE_atomic_fetch_xor(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_xor
#define shmem_atomic_fetch_xor(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_fetch_xor, __VA_ARGS__)
#define SHMEM_CASE_atomic_xor(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_xor
#define SHMEM_CTX_CASE_atomic_xor(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_xor
#define shmem_atomic_xor(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_xor, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_and_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_and_nbi
#define SHMEM_CTX_CASE_atomic_fetch_and_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_and_nbi
#define shmem_atomic_fetch_and_nbi(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_fetch_and_nbi, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_or_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_or_nbi
#define SHMEM_CTX_CASE_atomic_fetch_or_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_or_nbi
#define shmem_atomic_fetch_or_nbi(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_fetch_or_nbi, __VA_ARGS__)
#define SHMEM_CASE_atomic_fetch_xor_nbi(NAME, TYPE) , TYPE* : shmem_##NAME##_atomic_fetch_xor_nbi
#define SHMEM_CTX_CASE_atomic_fetch_xor_nbi(NAME, TYPE) , TYPE* : shmem_ctx_##NAME##_atomic_fetch_xor_nbi
#define shmem_atomic_fetch_xor_nbi(...) SHMEM_PICK(SHMEM_BITWISE_AMO_GENERIC_TYPES, atomic_fetch_xor_nbi, __VA_ARGS__)

/* Atomics, deprecated since 1.4 */
#define SHMEM_CASE_set(NAME, TYPE) , TYPE* : shmem_##NAME##_set
#define shmem_set(...) SHMEM_PICK_BY_FIRST(SHMEM_EXTENDED_AMO_BASIC_TYPES, set, __VA_ARGS__)
#define SHMEM_CASE_swap(NAME, TYPE) , TYPE* : shmem_##NAME##_swap
#define shmem_swap(...) SHMEM_PICK_BY_FIRST(SHMEM_EXTENDED_AMO_BASIC_TYPES, swap, __VA_ARGS__)

/* The source again */
#define SHMEM_CASE_fetch(NAME, TYPE) , TYPE* : shmem_##NAME##_fetch, const TYPE* : shmem_##NAME##_fetch
#define shmem_fetch(...) SHMEM_PICK_BY_FIRST(SHMEM_EXTENDED_AMO_BASIC_TYPES, fetch, __VA_ARGS__)

/* Those that add */
#define SHMEM_CASE_cswap(NAME, TYPE) , TYPE* : shmem_##NAME##_cswap
#define shmem_cswap(...) SHMEM_PICK_BY_FIRST(SHMEM_AMO_BASIC_TYPES, cswap, __VA_ARGS__)
#define SHMEM_CASE_finc(NAME, TYPE) , TYPE* : shmem_##NAME##_finc
#define shmem_finc(...) SHMEM_PICK_BY_FIRST(SHMEM_AMO_BASIC_TYPES, finc, __VA_ARGS__)
#define SHMEM_CASE_inc(NAME, TYPE) , TYPE* : shmem_##NAME##_inc
#define shmem_inc(...) SHMEM_PICK_BY_FIRST(SHMEM_AMO_BASIC_TYPES, inc, __VA_ARGS__)
#define SHMEM_CASE_fadd(NAME, TYPE) , TYPE* : shmem_##NAME##_fadd
#define shmem_fadd(...) SHMEM_PICK_BY_FIRST(SHMEM_AMO_BASIC_TYPES, fadd, __VA_ARGS__)
#define SHMEM_CASE_add(NAME, TYPE) , TYPE* : shmem_##NAME##_add
#define shmem_add(...) SHMEM_PICK_BY_FIRST(SHMEM_AMO_BASIC_TYPES, add, __VA_ARGS__)

/* Waiting; what is a C function too is looked up with the others */
#define SHMEM_CASE_wait_until(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until
#define shmem_wait_until(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until, __VA_ARGS__)
#define SHMEM_CASE_test(NAME, TYPE) , TYPE* : shmem_##NAME##_test
#define shmem_test(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test, __VA_ARGS__)

/* Of several words */
#define SHMEM_CASE_wait_until_all(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until_all
#define shmem_wait_until_all(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until_all, __VA_ARGS__)
#define SHMEM_CASE_wait_until_any(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until_any
#define shmem_wait_until_any(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until_any, __VA_ARGS__)
#define SHMEM_CASE_wait_until_some(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until_some
#define shmem_wait_until_some(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until_some, __VA_ARGS__)
#define SHMEM_CASE_wait_until_all_vector(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until_all_vector
#define shmem_wait_until_all_vector(...) \
  SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until_all_vector, __VA_ARGS__)
#define SHMEM_CASE_wait_until_any_vector(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until_any_vector
#define shmem_wait_until_any_vector(...) \
  SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until_any_vector, __VA_ARGS__)
#define SHMEM_CASE_wait_until_some_vector(NAME, TYPE) , TYPE* : shmem_##NAME##_wait_until_some_vector
#define shmem_wait_until_some_vector(...) \
  SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, wait_until_some_vector, __VA_ARGS__)
#define SHMEM_CASE_test_all(NAME, TYPE) , TYPE* : shmem_##NAME##_test_all
#define shmem_test_all(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test_all, __VA_ARGS__)
#define SHMEM_CASE_test_any(NAME, TYPE) , TYPE* : shmem_##NAME##_test_any
#define shmem_test_any(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test_any, __VA_ARGS__)
#define SHMEM_CASE_test_some(NAME, TYPE) , TYPE* : shmem_##NAME##_test_some
#define shmem_test_some(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test_some, __VA_ARGS__)
#define SHMEM_CASE_test_all_vector(NAME, TYPE) , TYPE* : shmem_##NAME##_test_all_vector
#define shmem_test_all_vector(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test_all_vector, __VA_ARGS__)
#define SHMEM_CASE_test_any_vector(NAME, TYPE) , TYPE* : shmem_##NAME##_test_any_vector
#define shmem_test_any_vector(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test_any_vector, __VA_ARGS__)
#define SHMEM_CASE_test_some_vector(NAME, TYPE) , TYPE* : shmem_##NAME##_test_some_vector
#define shmem_test_some_vector(...) SHMEM_PICK_BY_FIRST(SHMEM_WAIT_GENERIC_TYPES, test_some_vector, __VA_ARGS__)

/* Deprecated since 1.4 */
#define SHMEM_CASE_wait(NAME, TYPE) , TYPE* : shmem_##NAME##_wait
#define shmem_wait(...) SHMEM_PICK_BY_FIRST(SHMEM_OLD_WAIT_GENERIC_TYPES, wait, __VA_ARGS__)

/* Collectives */
#define SHMEM_CASE_broadcast(NAME, TYPE) , TYPE* : shmem_##NAME##_broadcast
#define shmem_broadcast(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, broadcast, __VA_ARGS__)
#define SHMEM_CASE_collect(NAME, TYPE) , TYPE* : shmem_##NAME##_collect
#define shmem_collect(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, collect, __VA_ARGS__)
#define SHMEM_CASE_fcollect(NAME, TYPE) , TYPE* : shmem_##NAME##_fcollect
#define shmem_fcollect(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, fcollect, __VA_ARGS__)
#define SHMEM_CASE_alltoall(NAME, TYPE) , TYPE* : shmem_##NAME##_alltoall
#define shmem_alltoall(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, alltoall, __VA_ARGS__)
#define SHMEM_CASE_alltoalls(NAME, TYPE) , TYPE* : shmem_##NAME##_alltoalls
#define shmem_alltoalls(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, alltoalls, __VA_ARGS__)
#define SHMEM_CASE_max_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_max_reduce
#define shmem_max_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, max_reduce, __VA_ARGS__)
#define SHMEM_CASE_min_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_min_reduce
#define shmem_min_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_RMA_BASIC_TYPES, min_reduce, __VA_ARGS__)

/* Those that add */
#define SHMEM_CASE_sum_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_sum_reduce
#define shmem_sum_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_ARITHMETIC_REDUCE_BASIC_TYPES, sum_reduce, __VA_ARGS__)
#define SHMEM_CASE_prod_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_prod_reduce
#define shmem_prod_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_ARITHMETIC_REDUCE_BASIC_TYPES, prod_reduce, __VA_ARGS__)
#define SHMEM_CASE_sum_inscan(NAME, TYPE) , TYPE* : shmem_##NAME##_sum_inscan
#define shmem_sum_inscan(...) SHMEM_PICK_BY_SECOND(SHMEM_ARITHMETIC_REDUCE_BASIC_TYPES, sum_inscan, __VA_ARGS__)
#define SHMEM_CASE_sum_exscan(NAME, TYPE) , TYPE* : shmem_##NAME##_sum_exscan
#define shmem_sum_exscan(...) SHMEM_PICK_BY_SECOND(SHMEM_ARITHMETIC_REDUCE_BASIC_TYPES, sum_exscan, __VA_ARGS__)

/* Those on bits */
#define SHMEM_CASE_and_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_and_reduce
#define shmem_and_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_BITWISE_REDUCE_GENERIC_TYPES, and_reduce, __VA_ARGS__)
#define SHMEM_CASE_or_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_or_reduce
#define shmem_or_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_BITWISE_REDUCE_GENERIC_TYPES, or_reduce, __VA_ARGS__)
#define SHMEM_CASE_xor_reduce(NAME, TYPE) , TYPE* : shmem_##NAME##_xor_reduce
#define shmem_xor_reduce(...) SHMEM_PICK_BY_SECOND(SHMEM_BITWISE_REDUCE_GENERIC_TYPES, xor_reduce, __VA_ARGS__)

#endif
