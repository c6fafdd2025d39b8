// SPDX-License-Identifier: Apache-2.0
// Arrays outlive shmem_finalize, which unmaps what they stand in: their pages are put aside and back again.
#pragma once

#include <cstddef>
#include <memory>

namespace shmem_kv {

/// Pages of a mapping that somebody else is about to unmap. Used by one thread. (They are moved, not mapped twice: the
/// kernel does only that for huge pages, too.)
class KeptMemory {
 public:
  /// Puts the pages around `size` bytes at `address` aside; until put_back() there is nothing that can be read or
  /// written. Throws std::system_error, and all is as it was.
  static std::shared_ptr<KeptMemory> take(std::byte* address, std::size_t size);
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  /// Unmaps them, wherever they are.
  ~KeptMemory();

  /// After the place has been unmapped: maps them there again. Throws std::system_error, also if something else is
  /// there now.
  void put_back();

 private:
  KeptMemory() = default;

  std::byte* place_ = nullptr;
  std::size_t size_ = 0;
  std::byte* now_ = nullptr;  // where they are
};

}  // namespace shmem_kv
