// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/windows.hpp"

#include <algorithm>

namespace shmem::kv {

std::vector<Window> windows_of(const Layout& layout, std::size_t blocks, std::size_t room) {
  if (blocks == 0) {
    return {};
  }
  constexpr std::size_t kLine = 64;
  const std::size_t each = std::max(room / blocks / kLine * kLine, kLine);
  const std::size_t planes = std::clamp<std::size_t>(each / layout.chunk, 1, layout.planes);
  const std::size_t size = std::min(each, layout.chunk);
  std::vector<Window> windows;
  for (std::size_t plane = 0; plane < layout.planes; plane += planes) {
    for (std::size_t offset = 0; offset < layout.chunk; offset += size) {
      windows.push_back(
          {plane, std::min(planes, layout.planes - plane), offset, std::min(size, layout.chunk - offset)});
    }
  }
  return windows;
}

}  // namespace shmem::kv
