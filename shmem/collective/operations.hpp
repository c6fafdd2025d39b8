// SPDX-License-Identifier: Apache-2.0
// The operations of reductions on elements of a type.
#pragma once

#include <algorithm>
#include <complex>
#include <concepts>
#include <type_traits>

#include "shmem/collective/reduce.hpp"

namespace shmem {

/// Overflow of signed numbers wraps.
struct Sum {
  template <typename T>
  static T apply(T first, T second) {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(first) + static_cast<std::make_unsigned_t<T>>(second));
    } else {
      return first + second;
    }
  }
};
struct Product {
  template <typename T>
  static T apply(T first, T second) {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<unsigned long long>(first) * static_cast<unsigned long long>(second));
    } else {
      return first * second;
    }
  }
};
struct Maximum {
  template <typename T>
  static T apply(T first, T second) {
    return std::max(first, second);
  }
};
struct Minimum {
  template <typename T>
  static T apply(T first, T second) {
    return std::min(first, second);
  }
};
struct And {
  template <typename T>
  static T apply(T first, T second) {
    return static_cast<T>(first & second);
  }
};
struct Or {
  template <typename T>
  static T apply(T first, T second) {
    return static_cast<T>(first | second);
  }
};
struct Xor {
  template <typename T>
  static T apply(T first, T second) {
    return static_cast<T>(first ^ second);
  }
};

template <typename Operation, typename T>
void combine_elements(void* first, const void* second, std::size_t count) {
  // They never overlap, which lets the compiler combine several elements at a time.
  auto* __restrict to = static_cast<T*>(first);
  const auto* __restrict from = static_cast<const T*>(second);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = Operation::apply(to[i], from[i]);
  }
}

/// The type whose code is used: one per size and sign, so that `long` and `long long` share theirs.
template <typename T>
struct ImplementationType {
  using type = T;
};
template <std::integral T>
struct ImplementationType<T> {
  using Signed = std::conditional_t<
      sizeof(T) == 1, std::int8_t,
      std::conditional_t<sizeof(T) == 2, std::int16_t, std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>>>;
  using type = std::conditional_t<std::is_signed_v<T>, Signed, std::make_unsigned_t<Signed>>;
};

template <typename Operation, typename T>
constexpr Reduction reduction() {
  return {sizeof(T), combine_elements<Operation, typename ImplementationType<T>::type>};
}

}  // namespace shmem
