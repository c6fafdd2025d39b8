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
    result = 0x7e00;
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
bool has_f16c() {
  static const bool has = [] {
    std::array<unsigned, 4> registers{};
    // Also whether the kernel saves the registers of AVX.
    return __builtin_cpu_supports("avx") != 0 &&
           __get_cpuid(1, &registers[0], &registers[1], &registers[2], &registers[3]) != 0 &&
           (registers[2] & bit_F16C) != 0;
  }();
  return has;
}

struct AddVectors {
  using Scalar = Sum;
  [[gnu::target("avx,f16c"), gnu::always_inline]] static __m256 apply(__m256 a, __m256 b) {
    return _mm256_add_ps(a, b);
  }
};

/// Sums are what gradients need; eight at a time.
template <typename Vectors>
[[gnu::target("avx,f16c")]] void combine_with_f16c(void* first, const void* second, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  auto* to = static_cast<Float16*>(first);
  const auto* from = static_cast<const Float16*>(second);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256 mine = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(to + i)));
    const __m256 theirs = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    const __m128i result = _mm256_cvtps_ph(Vectors::apply(mine, theirs), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), result);
  }
  combine_halves<typename Vectors::Scalar, Float16>(to + i, from + i, count - i);
}

void sum_float16(void* first, const void* second, std::size_t count) {
  if (has_f16c()) {
    combine_with_f16c<AddVectors>(first, second, count);
  } else {
    combine_halves<Sum, Float16>(first, second, count);
  }
}
#else
constexpr auto sum_float16 = combine_halves<Sum, Float16>;
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
  constexpr auto sum = std::is_same_v<Half, Float16> ? sum_float16 : combine_halves<Sum, Half>;
  switch (operation) {
    case ElementOperation::kSum:
      return TypedReduction{{sizeof(Half), sum}, nullptr};
    case ElementOperation::kAverage:
      return TypedReduction{{sizeof(Half), sum}, divide_halves<Half>};
    case ElementOperation::kProduct:
      return TypedReduction{{sizeof(Half), combine_halves<Product, Half>}, nullptr};
    case ElementOperation::kMinimum:
      return TypedReduction{{sizeof(Half), combine_halves<Minimum, Half>}, nullptr};
    case ElementOperation::kMaximum:
      return TypedReduction{{sizeof(Half), combine_halves<Maximum, Half>}, nullptr};
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
      return TypedReduction{reduction<Minimum, T>(), nullptr};
    case ElementOperation::kMaximum:
      return TypedReduction{reduction<Maximum, T>(), nullptr};
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
