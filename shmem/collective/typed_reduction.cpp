// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/typed_reduction.hpp"

#include <array>
#include <bit>

#include "shmem/collective/operations.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace shmem {
namespace {

// If one of the numbers is a NaN, the result is a NaN: on all ranks, whichever of them contributed it.
struct MaximumOrNan {
  template <typename T>
  static T apply(T first, T second) {
    return second > first || second != second ? second : first;
  }
};
struct MinimumOrNan {
  template <typename T>
  static T apply(T first, T second) {
    return second < first || second != second ? second : first;
  }
};

// Elements of 16 bits, without arithmetic of their own.
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

float widen(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

void narrow(float value, Bfloat16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // To nearest, ties to even; a NaN stays one.
  const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  to.bits = static_cast<std::uint16_t>((value != value ? bits | 0x400000 : rounded) >> 16);
}

float widen(Float16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000U} << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  if (magnitude >= 0x7c00) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // The exponents' biases differ by 112; the multiplication also normalises what is subnormal.
  const float scaled = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>((127U + 112U) << 23);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

void narrow(float value, Float16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000) {
    result = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // rounds to more than the largest
    result = 0x7c00;
  } else if (magnitude < 0x38800000) {  // subnormal: the addition rounds to its last bit
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    result = (magnitude - (112U << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  }
  to.bits = static_cast<std::uint16_t>(sign | result);
}

template <typename Operation, typename Half>
void combine_halves(void* first, const void* second, std::size_t count) {
  auto* __restrict to = static_cast<Half*>(first);
  const auto* __restrict from = static_cast<const Half*>(second);
  for (std::size_t i = 0; i < count; ++i) {
    narrow(Operation::apply(widen(to[i]), widen(from[i])), to[i]);
  }
}

#if defined(__x86_64__)
/// AVX2, and the conversions of float16.
bool has_lanes() {
  static const bool has = [] {
    std::array<unsigned, 4> registers{};
    // Also whether the kernel saves the registers of AVX.
    return __builtin_cpu_supports("avx2") != 0 &&
           __get_cpuid(1, &registers[0], &registers[1], &registers[2], &registers[3]) != 0 &&
           (registers[2] & bit_F16C) != 0;
  }();
  return has;
}

// The operations on eight floats. Of a NaN, and of two zeros, the maximum and minimum instructions return the second
// operand.
template <typename Operation>
struct Lanes;
template <>
struct Lanes<Sum> {
  [[gnu::target("avx"), gnu::always_inline]] static __m256 apply(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
};
template <>
struct Lanes<Product> {
  [[gnu::target("avx"), gnu::always_inline]] static __m256 apply(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
};
template <>
struct Lanes<MaximumOrNan> {
  [[gnu::target("avx"), gnu::always_inline]] static __m256 apply(__m256 a, __m256 b) {
    return _mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  }
};
template <>
struct Lanes<MinimumOrNan> {
  [[gnu::target("avx"), gnu::always_inline]] static __m256 apply(__m256 a, __m256 b) {
    return _mm256_blendv_ps(_mm256_min_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  }
};

constexpr std::size_t kLanes = 8;

template <typename Half>
__m128i load(const Half* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 widen_lanes(const Float16* from) {
  return _mm256_cvtph_ps(load(from));
}

[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void narrow_lanes(__m256 value, Float16* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 widen_lanes(const Bfloat16* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load(from)), 16));
}

/// As narrow() does it.
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void narrow_lanes(__m256 value, Bfloat16* to) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i result = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, nan, is_nan), 16);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
}

/// Returns how many elements it has combined: all but fewer than kLanes.
template <typename Operation, typename Half>
[[gnu::target("avx2,f16c")]] std::size_t combine_lanes(Half* to, const Half* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    narrow_lanes(Lanes<Operation>::apply(widen_lanes(to + i), widen_lanes(from + i)), to + i);
  }
  return i;
}

/// Eight elements at a time where the processor can convert as many.
template <typename Operation, typename Half>
void combine_half_lanes(void* first, const void* second, std::size_t count) {
  auto* to = static_cast<Half*>(first);
  const auto* from = static_cast<const Half*>(second);
  const std::size_t done = has_lanes() ? combine_lanes<Operation>(to, from, count) : 0;
  combine_halves<Operation, Half>(to + done, from + done, count - done);
}
#else
template <typename Operation, typename Half>
constexpr auto combine_half_lanes = combine_halves<Operation, Half>;
#endif

template <typename T>
void divide(void* elements, std::size_t count, int members) {
  auto* values = static_cast<T*>(elements);
  const T divisor = static_cast<T>(members);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] /= divisor;
  }
}

template <typename Half>
void divide_halves(void* elements, std::size_t count, int members) {
  auto* values = static_cast<Half*>(elements);
  for (std::size_t i = 0; i < count; ++i) {
    narrow(widen(values[i]) / static_cast<float>(members), values[i]);
  }
}

template <typename Half>
std::optional<TypedReduction> of_halves(ElementOperation operation) {
  const auto combine = [](auto apply) { return Reduction{sizeof(Half), combine_half_lanes<decltype(apply), Half>}; };
  switch (operation) {
    case ElementOperation::kSum:
      return TypedReduction{combine(Sum{}), nullptr};
    case ElementOperation::kAverage:
      return TypedReduction{combine(Sum{}), divide_halves<Half>};
    case ElementOperation::kProduct:
      return TypedReduction{combine(Product{}), nullptr};
    case ElementOperation::kMinimum:
      return TypedReduction{combine(MinimumOrNan{}), nullptr};
    case ElementOperation::kMaximum:
      return TypedReduction{combine(MaximumOrNan{}), nullptr};
    default:
      return std::nullopt;
  }
}

template <typename T>
std::optional<TypedReduction> of_numbers(ElementOperation operation) {
  switch (operation) {
    case ElementOperation::kSum:
      return TypedReduction{reduction<Sum, T>(), nullptr};
    case ElementOperation::kProduct:
      return TypedReduction{reduction<Product, T>(), nullptr};
    case ElementOperation::kMinimum:
      return TypedReduction{reduction<MinimumOrNan, T>(), nullptr};
    case ElementOperation::kMaximum:
      return TypedReduction{reduction<MaximumOrNan, T>(), nullptr};
    case ElementOperation::kAverage:
      if constexpr (std::floating_point<T>) {
        return TypedReduction{reduction<Sum, T>(), divide<T>};
      }
      return std::nullopt;
    default:
      break;
  }
  if constexpr (std::integral<T>) {
    switch (operation) {
      case ElementOperation::kAnd:
        return TypedReduction{reduction<And, T>(), nullptr};
      case ElementOperation::kOr:
        return TypedReduction{reduction<Or, T>(), nullptr};
      default:
        return TypedReduction{reduction<Xor, T>(), nullptr};
    }
  }
  return std::nullopt;
}

/// Bytes that are 0 or 1: a sum is whether any is 1, a product whether all are.
std::optional<TypedReduction> of_bools(ElementOperation operation) {
  switch (operation) {
    case ElementOperation::kAverage:
      return std::nullopt;
    case ElementOperation::kSum:
    case ElementOperation::kMaximum:
    case ElementOperation::kOr:
      return TypedReduction{reduction<Or, std::uint8_t>(), nullptr};
    case ElementOperation::kXor:
      return TypedReduction{reduction<Xor, std::uint8_t>(), nullptr};
    default:
      return TypedReduction{reduction<And, std::uint8_t>(), nullptr};
  }
}

constexpr std::array kTypeNames{"bool",    "uint8",    "int8",    "int16",   "int32", "int64",
                                "float16", "bfloat16", "float32", "float64", "bytes"};
constexpr std::array kOperationNames{"sum", "average", "product", "minimum", "maximum", "and", "or", "xor"};

template <typename Names, typename Value>
const char* name_in(const Names& names, Value value) {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "of no known kind";
}

}  // namespace

const char* name_of(ElementType type) {
  return name_in(kTypeNames, type);
}

const char* name_of(ElementOperation operation) {
  return name_in(kOperationNames, operation);
}

std::optional<TypedReduction> typed_reduction(ElementType type, ElementOperation operation) {
  if (static_cast<std::size_t>(operation) >= kOperationNames.size()) {
    return std::nullopt;
  }
  switch (type) {
    case ElementType::kBool:
      return of_bools(operation);
    case ElementType::kUint8:
      return of_numbers<std::uint8_t>(operation);
    case ElementType::kInt8:
      return of_numbers<std::int8_t>(operation);
    case ElementType::kInt16:
      return of_numbers<std::int16_t>(operation);
    case ElementType::kInt32:
      return of_numbers<std::int32_t>(operation);
    case ElementType::kInt64:
      return of_numbers<std::int64_t>(operation);
    case ElementType::kFloat16:
      return of_halves<Float16>(operation);
    case ElementType::kBfloat16:
      return of_halves<Bfloat16>(operation);
    case ElementType::kFloat32:
      return of_numbers<float>(operation);
    case ElementType::kFloat64:
      return of_numbers<double>(operation);
    case ElementType::kBytes:
      break;
  }
  return std::nullopt;
}

}  // namespace shmem
