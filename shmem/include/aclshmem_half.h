/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floating-point numbers of 16 bits, as Ascend processors have them: half is IEEE 754's (5 bits of exponent, 10 of
 * fraction), bfloat16 the upper half of a float. Stored as their bits; to compute with them they become floats, and are
 * rounded to nearest, ties to even, when they become 16 bits again.
 */
#ifndef SHMEM_ACLSHMEM_HALF_H
#define SHMEM_ACLSHMEM_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define ACLSHMEMI_HALF_INLINE inline
#else
#define ACLSHMEMI_HALF_INLINE static inline
#endif

ACLSHMEMI_HALF_INLINE uint32_t shmemi_bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
ACLSHMEMI_HALF_INLINE float shmemi_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

ACLSHMEMI_HALF_INLINE float shmemi_bfloat16_to_float(uint16_t bits) {
  return shmemi_float_of_bits((uint32_t)bits << 16);
}
ACLSHMEMI_HALF_INLINE uint16_t shmemi_bfloat16_from_float(float value) {
  const uint32_t bits = shmemi_bits_of_float(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return (uint16_t)(bits >> 16 | 0x40U); /* not a number, and stays so */
  }
  return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

ACLSHMEMI_HALF_INLINE float shmemi_half_to_float(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000U) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fU;
  const uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) { /* subnormal: fraction * 2^-24 */
    const float value = (float)fraction * 5.9604644775390625e-8F;
    return sign != 0 ? -value : value;
  }
  if (exponent == 0x1fU) {
    return shmemi_float_of_bits(sign | 0x7f800000U | fraction << 13);
  }
  return shmemi_float_of_bits(sign | (exponent + 112U) << 23 | fraction << 13);
}
ACLSHMEMI_HALF_INLINE uint16_t shmemi_half_from_float(float value) {
  const uint32_t bits = shmemi_bits_of_float(value);
  const uint32_t sign = bits >> 16 & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return (uint16_t)(sign | 0x7e00U | (magnitude >> 13 & 0x3ffU));
  }
  if (magnitude >= 0x477ff000U) {
    return (uint16_t)(sign | 0x7c00U); /* from 65520 on: infinite */
  }
  if (magnitude < 0x38800000U) { /* below 2^-14: subnormal; the addition of 0.5 rounds at the last of its bits */
    const float rounded = shmemi_float_of_bits(magnitude) + 0.5F;
    return (uint16_t)(sign | (shmemi_bits_of_float(rounded) - 0x3f000000U));
  }
  return (uint16_t)(sign | ((magnitude + 0xfffU + (magnitude >> 13 & 1U) - 0x38000000U) >> 13));
}

#ifdef __cplusplus
struct aclshmem_half_t {
  uint16_t bits = 0;
  aclshmem_half_t() = default;
  aclshmem_half_t(float value) : bits(shmemi_half_from_float(value)) {}
  operator float() const { return shmemi_half_to_float(bits); }
};
struct aclshmem_bfloat16_t {
  uint16_t bits = 0;
  aclshmem_bfloat16_t() = default;
  aclshmem_bfloat16_t(float value) : bits(shmemi_bfloat16_from_float(value)) {}
  operator float() const { return shmemi_bfloat16_to_float(bits); }
};
#endif

#endif
