// SPDX-License-Identifier: Apache-2.0
// Sizes as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace base {

/// "3 GiB", "512 KiB", "1000 bytes": the largest unit that says it exactly.
inline std::string size_text(std::size_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, " GiB"}, {20, " MiB"}, {10, " KiB"}}) {
    if (bytes > 0 && bytes % (std::size_t{1} << shift) == 0) {
      return std::to_string(bytes >> shift) + unit;
    }
  }
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
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
