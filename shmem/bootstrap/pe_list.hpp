// SPDX-License-Identifier: Apache-2.0
// PEs as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shmem {

/// "PE 3", "PEs 0, 2-5, 7": runs of ascending `pes` drawn together.
inline std::string pe_list(const std::vector<int>& pes) {
  std::string text = pes.size() == 1 ? "PE " : "PEs ";
  for (std::size_t first = 0; first < pes.size();) {
    std::size_t last = first;
    while (last + 1 < pes.size() && pes[last + 1] == pes[last] + 1) ++last;
    if (first > 0) text += ", ";
    text += std::to_string(pes[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(pes[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace shmem
