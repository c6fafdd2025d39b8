// SPDX-License-Identifier: Apache-2.0
// Memory of this PE alone, whose pages come when they are first used: where the core is that uses them.
#pragma once

#include <cstddef>
#include <memory>

#include "shmem/result.hpp"

namespace shmem::kv {

struct Unmap {
  std::size_t size = 0;
  void operator()(std::byte* memory) const;
};

/// Owns it. Aligned to pages.
class PrivateMemory {
 public:
  /// At least so many bytes; what was in there may be lost. Error: not_enough_memory.
  Result<void> reserve(std::size_t bytes);
  /// nullptr before the first reserve().
  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace shmem::kv
