/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's atomic operations on the memory of a PE. C++ only; included by aclshmem_device.h. That library has
 * them for kernels; here the host may call them, too.
 *
 * All are atomic with each other, with signals and with OpenSHMEM's on the same word, which is symmetric and aligned.
 * Earlier stores are visible to a PE that sees the result. A call with wrong arguments ends the job with a message
 * that names it.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_ATOMIC_H
#define SHMEM_ACLSHMEM_DEVICE_ATOMIC_H

#ifndef __cplusplus
#error "aclshmem_device_atomic.h is for C++"
#endif

#include "aclshmem_half.h"
#include "aclshmem_types.h"

template <typename T>
struct aclshmemi_type {
  static constexpr int value() { return shmemi_type_of<T>(); }
};
template <>
struct aclshmemi_type<aclshmem_half_t> {
  static constexpr int value() { return SHMEMX_HALF; }
};
template <>
struct aclshmemi_type<aclshmem_bfloat16_t> {
  static constexpr int value() { return SHMEMX_BFLOAT16; }
};

/* Each returns the previous value. */
template <typename T>
T aclshmemi_atomic(const char* call, int operation, T* dest, T operand, T condition, int pe) noexcept {
  T before;
  const shmemx_atomic_t asked = {call, operation, aclshmemi_type<T>::value(), dest, &operand, &condition, &before};
  shmemx_atomic(&asked, pe);
  return before;
}

#define ACLSHMEM_ATOMIC_TYPES(X) \
  X(int32, int32_t)              \
  X(int64, int64_t)              \
  X(uint32, uint32_t)            \
  X(uint64, uint64_t)
#define ACLSHMEM_ATOMIC_SET_TYPES(X) \
  ACLSHMEM_ATOMIC_TYPES(X)           \
  X(float, float)
#define ACLSHMEM_ATOMIC_ADD_TYPES(X) \
  X(int8, int8_t)                    \
  X(int16, int16_t)                  \
  X(half, aclshmem_half_t)           \
  X(bfloat16, aclshmem_bfloat16_t)   \
  ACLSHMEM_ATOMIC_SET_TYPES(X)

/* Floating-point numbers are rounded to nearest. */
#define ACLSHMEMI_ATOMIC(NAME, T)                                                          \
  inline void aclshmem_##NAME##_atomic_add(T* dst, T value, int32_t pe) noexcept {         \
    aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_add", SHMEMX_ADD, dst, value, T(), pe); \
  }                                                                                        \
  inline void aclshmem_##NAME##_atomic_inc(T* dst, int32_t pe) noexcept {                  \
    aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_inc", SHMEMX_ADD, dst, T(1), T(), pe);  \
  }
ACLSHMEM_ATOMIC_ADD_TYPES(ACLSHMEMI_ATOMIC)
#undef ACLSHMEMI_ATOMIC

#define ACLSHMEMI_ATOMIC(NAME, T)                                                                   \
  inline void aclshmem_##NAME##_atomic_set(T* dst, T value, int32_t pe) noexcept {                  \
    aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_set", SHMEMX_SWAP, dst, value, T(), pe);         \
  }                                                                                                 \
  inline T aclshmem_##NAME##_atomic_swap(T* dst, T value, int32_t pe) noexcept {                    \
    return aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_swap", SHMEMX_SWAP, dst, value, T(), pe); \
  }
ACLSHMEM_ATOMIC_SET_TYPES(ACLSHMEMI_ATOMIC)
#undef ACLSHMEMI_ATOMIC

#define ACLSHMEMI_ATOMIC_FETCH(NAME, T, VERB, OPERATION)                                                  \
  inline T aclshmem_##NAME##_atomic_fetch_##VERB(T* dst, T value, int32_t pe) noexcept {                  \
    return aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_fetch_" #VERB, OPERATION, dst, value, T(), pe); \
  }
#define ACLSHMEMI_ATOMIC_BITS(NAME, T, VERB, OPERATION)                                      \
  inline void aclshmem_##NAME##_atomic_##VERB(T* dst, T value, int32_t pe) noexcept {        \
    aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_" #VERB, OPERATION, dst, value, T(), pe); \
  }                                                                                          \
  ACLSHMEMI_ATOMIC_FETCH(NAME, T, VERB, OPERATION)
#define ACLSHMEMI_ATOMIC(NAME, T)                                                                                    \
  inline T aclshmem_##NAME##_atomic_fetch(T* src, int32_t pe) noexcept {                                             \
    return aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_fetch", SHMEMX_FETCH, src, T(), T(), pe);                  \
  }                                                                                                                  \
  inline T aclshmem_##NAME##_atomic_fetch_inc(T* dst, int32_t pe) noexcept {                                         \
    return aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_fetch_inc", SHMEMX_ADD, dst, T(1), T(), pe);               \
  }                                                                                                                  \
  inline T aclshmem_##NAME##_atomic_compare_swap(T* dst, T cond, T value, int32_t pe) noexcept {                     \
    return aclshmemi_atomic<T>("aclshmem_" #NAME "_atomic_compare_swap", SHMEMX_COMPARE_SWAP, dst, value, cond, pe); \
  }                                                                                                                  \
  ACLSHMEMI_ATOMIC_FETCH(NAME, T, add, SHMEMX_ADD)                                                                   \
  ACLSHMEMI_ATOMIC_BITS(NAME, T, and, SHMEMX_AND)                                                                    \
  ACLSHMEMI_ATOMIC_BITS(NAME, T, or, SHMEMX_OR)                                                                      \
  ACLSHMEMI_ATOMIC_BITS(NAME, T, xor, SHMEMX_XOR)
ACLSHMEM_ATOMIC_TYPES(ACLSHMEMI_ATOMIC)
#undef ACLSHMEMI_ATOMIC
#undef ACLSHMEMI_ATOMIC_BITS
#undef ACLSHMEMI_ATOMIC_FETCH

/* The same by an engine's name, on any of these types that has the operation. */
#define ACLSHMEMI_ENGINE_ATOMIC(ENGINE, VERB, OPERATION)                                                     \
  template <typename T>                                                                                      \
  void aclshmemx_##ENGINE##_atomic_##VERB(T* dst, T value, int32_t pe) noexcept {                            \
    aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_" #VERB, OPERATION, dst, value, T(), pe);              \
  }                                                                                                          \
  template <typename T>                                                                                      \
  T aclshmemx_##ENGINE##_atomic_fetch_##VERB(T* dst, T value, int32_t pe) noexcept {                         \
    return aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_fetch_" #VERB, OPERATION, dst, value, T(), pe); \
  }
#define ACLSHMEMI_ENGINE_ATOMICS(ENGINE)                                                                           \
  template <typename T>                                                                                            \
  T aclshmemx_##ENGINE##_atomic_fetch(T* src, int32_t pe) noexcept {                                               \
    return aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_fetch", SHMEMX_FETCH, src, T(), T(), pe);             \
  }                                                                                                                \
  template <typename T>                                                                                            \
  void aclshmemx_##ENGINE##_atomic_set(T* dst, T value, int32_t pe) noexcept {                                     \
    aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_set", SHMEMX_SWAP, dst, value, T(), pe);                     \
  }                                                                                                                \
  template <typename T>                                                                                            \
  T aclshmemx_##ENGINE##_atomic_swap(T* dst, T value, int32_t pe) noexcept {                                       \
    return aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_swap", SHMEMX_SWAP, dst, value, T(), pe);             \
  }                                                                                                                \
  template <typename T>                                                                                            \
  T aclshmemx_##ENGINE##_atomic_compare_swap(T* dst, T cond, T value, int32_t pe) noexcept {                       \
    return aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_compare_swap", SHMEMX_COMPARE_SWAP, dst, value, cond, \
                               pe);                                                                                \
  }                                                                                                                \
  template <typename T>                                                                                            \
  void aclshmemx_##ENGINE##_atomic_inc(T* dst, int32_t pe) noexcept {                                              \
    aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_inc", SHMEMX_ADD, dst, T(1), T(), pe);                       \
  }                                                                                                                \
  template <typename T>                                                                                            \
  T aclshmemx_##ENGINE##_atomic_fetch_inc(T* dst, int32_t pe) noexcept {                                           \
    return aclshmemi_atomic<T>("aclshmemx_" #ENGINE "_atomic_fetch_inc", SHMEMX_ADD, dst, T(1), T(), pe);          \
  }                                                                                                                \
  ACLSHMEMI_ENGINE_ATOMIC(ENGINE, add, SHMEMX_ADD)
#define ACLSHMEMI_ENGINE_BITS(ENGINE)              \
  ACLSHMEMI_ENGINE_ATOMIC(ENGINE, and, SHMEMX_AND) \
  ACLSHMEMI_ENGINE_ATOMIC(ENGINE, or, SHMEMX_OR)   \
  ACLSHMEMI_ENGINE_ATOMIC(ENGINE, xor, SHMEMX_XOR)

#endif
