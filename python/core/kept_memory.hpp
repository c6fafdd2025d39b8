// SPDX-License-Identifier: Apache-2.0
// Keeps the pages of arrays that outlive shmem_finalize, which unmaps the heap: they are moved away and back again.
#pragma once

#include <cstddef>
#include <memory>

namespace shmem_kv {

/// Pages of a mapping that another owner is about to unmap. Used by one thread. The pages are moved instead of mapped
/// twice, because only that works for huge pages too.
class KeptMemory {
 public:
  /// Moves the pages around `size` bytes at `address` away; they cannot be accessed before put_back(). Throws
  /// std::system_error; then nothing has changed.
  static std::shared_ptr<KeptMemory> take(std::byte* address, std::size_t size);
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  /// Unmaps them, wherever they are.
  ~KeptMemory();

  /// Moves them back. REQUIRES: their former place has been unmapped. Throws std::system_error, also if something else
  /// is mapped there now.
  void put_back();

 private:
  KeptMemory() = default;

  std::byte* place_ = nullptr;
  std::size_t size_ = 0;
  std::byte* now_ = nullptr;  // their current place
};

}  // namespace shmem_kv
