// SPDX-License-Identifier: Apache-2.0
// Sizes and counts as people read them.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace base {

/// "1 PE", "2 PEs", "3 processes".
template <std::integral Number>
std::string count(Number number, std::string_view thing) {
  const char* const end = number == 1 ? "" : thing.ends_with('s') ? "es" : "s";
  return std::to_string(number) + ' ' + std::string(thing) + end;
}

/// "3 GiB", "512 KiB", "1000 bytes": the largest unit that says it exactly.
inline std::string size_text(std::size_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, " GiB"}, {20, " MiB"}, {10, " KiB"}}) {
    if (bytes > 0 && bytes % (std::size_t{1} << shift) == 0) {
      return std::to_string(bytes >> shift) + unit;
    }
  }
  return count(bytes, "byte");
}

/// "23.5 GiB": a size that need not be exact.
inline std::string rounded_size_text(std::size_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, " GiB"}, {20, " MiB"}, {10, " KiB"}}) {
    if (bytes >> shift != 0) {
      const std::size_t tenths = ((bytes >> (shift - 10)) * 10) >> 10;
      return std::to_string(tenths / 10) + (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + unit;
    }
  }
  return size_text(bytes);
}

}  // namespace base
