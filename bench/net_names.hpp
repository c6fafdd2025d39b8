// SPDX-License-Identifier: Apache-2.0
// What is measured between two hosts.
#pragma once

#include <cstddef>
#include <string>

#include "bench/item.hpp"

namespace bench {

inline constexpr const char* kPutLatency = "put 8 B, one way";
inline constexpr const char* kGetLatency = "get 8 B";
inline constexpr std::size_t kStreamed[] = {65536, std::size_t{1} << 20};
inline std::string put_stream(std::size_t bytes) {
  return "puts of " + size_text(bytes);
}
inline std::string get_stream(std::size_t bytes) {
  return "gets of " + size_text(bytes);
}

}  // namespace bench
