// SPDX-License-Identifier: Apache-2.0
// Checks, which throw if they fail.
#pragma once

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

#include "driver/result.hpp"

namespace guest {

inline void require(bool condition, const std::string& why) {
  if (!condition) {
    throw std::runtime_error(why);
  }
}

/// For a system call: throws with errno if `result` is negative.
inline int require_call(int result, const std::string& what) {
  if (result < 0) {
    throw std::system_error(errno, std::generic_category(), what);
  }
  return result;
}

template <typename T>
T require_result(gba::Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().text);
  }
  return *std::move(result);
}

inline std::string hex(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, value);
  return text.data();
}

inline void require_equal(std::uint64_t got, std::uint64_t wanted, const std::string& what) {
  require(got == wanted, what + " is " + hex(got) + ", not " + hex(wanted));
}

}  // namespace guest
