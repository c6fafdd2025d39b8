// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace shmem {

/// An address and the number of bytes from there on; null: nothing.
struct MemoryRange {
  std::byte* address = nullptr;
  std::size_t room = 0;
};

}  // namespace shmem
