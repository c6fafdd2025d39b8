// SPDX-License-Identifier: Apache-2.0
// PEs and times in messages.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shmem {

/// "3", "0, 2-5, 7": ascending `numbers` with runs merged.
inline std::string run_list(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += fmt::format("{}{}", first > 0 ? ", " : "", numbers[first]);
    if (last > first) {
      text += fmt::format("{}{}", last == first + 1 ? ", " : "-", numbers[last]);
    }
    first = last + 1;
  }
  return text;
}

/// "PE 3", "PEs 0, 2-5, 7".
inline std::string pe_list(const std::vector<int>& pes) {
  return (pes.size() == 1 ? "PE " : "PEs ") + run_list(pes);
}

/// What an Error says, to be put into the text of another one.
inline std::string_view without_prefix(std::string_view text) {
  constexpr std::string_view kPrefix = "shmem: ";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

/// "120 s", "0.150 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  const auto fraction = time.count() % 1000;
  return fmt::format("{}{} s", time.count() / 1000, fraction != 0 ? fmt::format(".{:03}", fraction) : "");
}

}  // namespace shmem
