// SPDX-License-Identifier: Apache-2.0
// PEs, and other numbers, as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shmem {

/// "3", "0, 2-5, 7": runs of ascending `numbers` drawn together.
inline std::string run_list(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (first > 0) text += ", ";
    text += std::to_string(numbers[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(numbers[last]);
    first = last + 1;
  }
  return text;
}

/// "PE 3", "PEs 0, 2-5, 7".
inline std::string pe_list(const std::vector<int>& pes) {
  return (pes.size() == 1 ? "PE " : "PEs ") + run_list(pes);
}

}  // namespace shmem
