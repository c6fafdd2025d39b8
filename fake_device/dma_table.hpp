// SPDX-License-Identifier: Apache-2.0
// The memory that a client lets the device write: what an IOMMU holds for a function.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "fake_device/mapping.hpp"
#include "fake_device/sigbus_guard.hpp"
#include "fake_device/unique_fd.hpp"

namespace fake_device {

inline constexpr std::size_t kMaxDmaMaps = 65535;
inline constexpr std::size_t kMaxDmaFiles = 32;
inline constexpr std::uint64_t kPageSize = 4096;

/// Used by one thread. Errors are positive errno values, as they go to the client; 0 is success. Any change may move
/// what resolve() gave before.
class DmaTable {
 public:
  /// Makes [address, address + size) the client's memory. With a file: its bytes from `offset` on; without one the
  /// memory can only be reached by messages. EINVAL: unaligned, empty, past the end of the address space or of the
  /// file, unknown flags, or a file that is no memory; EEXIST: overlaps what is there; EACCES: writable memory,
  /// read-only file; ENOSPC: too many maps or files; ENOMEM.
  int map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint32_t flags, UniqueFd file);
  /// Takes back what one map() gave, or several that lie in the range: whoever translates addresses for a guest forgets
  /// in larger pieces than it has mapped. ENOENT if there is no map in it, or it would cut one in two.
  int unmap(std::uint64_t address, std::uint64_t size);
  void unmap_all();

  /// The 8 bytes at `iova`, if the device may write them and they have a file.
  [[nodiscard]] std::optional<GuardedWord> resolve(std::uint64_t iova) const;
  /// True if the device may write 8 bytes at `iova`, but by messages only.
  [[nodiscard]] bool by_message(std::uint64_t iova) const;
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }

 private:
  /// One file, mapped once from its beginning however many ranges name it. The mapping keeps the inode, and so its
  /// number, alive.
  struct File {
    Mapping mapping;
  };
  using FileId = std::tuple<dev_t, ino_t, bool>;  // the last: mapped for writing
  struct Range {
    std::uint64_t size;
    std::uint64_t offset;
    bool writable;
    std::shared_ptr<File> file;  // null: by messages
  };

  [[nodiscard]] bool overlaps(std::uint64_t address, std::uint64_t size) const;
  [[nodiscard]] const Range* find(std::uint64_t iova, std::uint64_t& within) const;
  int open_file(const UniqueFd& file, std::uint64_t end, bool writable, std::shared_ptr<File>& result);

  std::map<std::uint64_t, Range> ranges_;
  std::map<FileId, std::weak_ptr<File>> files_;
};

}  // namespace fake_device
