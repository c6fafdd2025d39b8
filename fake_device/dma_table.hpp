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

#include "fake_device/closer.hpp"
#include "fake_device/shared_memory.hpp"

namespace fake_device {

inline constexpr std::size_t kMaxDmaMaps = 65535;
inline constexpr std::size_t kMaxDmaFiles = 32;
inline constexpr std::uint64_t kPageSize = 4096;

/// What all clients share: each has its own part, so that no client takes what another needs, and may have more while
/// there is some. Used by one thread.
struct DmaPool {
  static constexpr std::uint64_t kOwnBytes = std::uint64_t{64} << 30;  // 64 GiB of addresses for each of 709 ports
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;  // of one client
  static constexpr std::size_t kOwnMaps = 1024;
  std::uint64_t bytes = std::uint64_t{16} << 40;
  std::size_t maps = std::size_t{1} << 20;  // about 100 MiB of memory
  bool trusting = false;                    // clients do not take memory away while the device stores to it
};

/// Used by one thread. Errors are positive errno values, as they go to the client; 0 is success. Any change may move
/// what resolve() gave before.
class DmaTable {
 public:
  /// `pool` must outlive the table.
  explicit DmaTable(DmaPool& pool) : pool_(pool) {}
  DmaTable(const DmaTable&) = delete;
  DmaTable& operator=(const DmaTable&) = delete;
  ~DmaTable() { unmap_all(); }

  /// Makes [address, address + size) the client's memory. With a file: its bytes from `offset` on; without one the
  /// memory can only be reached by messages. EINVAL: unaligned, empty, past the end of the address space or of the
  /// file, unknown flags, or a file that is no memory; EEXIST: overlaps what is there; EACCES: writable memory,
  /// read-only file; ENOSPC: too many maps, files or bytes of files; ENOMEM.
  int map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint32_t flags, Given file);
  /// Removes one map, or several that lie in the range: a hypervisor that translates addresses for a guest unmaps
  /// larger pieces than it has mapped. ENOENT if there is no map in it, or it would cut one in two.
  int unmap(std::uint64_t address, std::uint64_t size);
  void unmap_all();

  /// The 8 bytes at `iova`, if the device may write them and they lie in a file from which no pages can be taken. While
  /// the kernel takes pages of a large file away, a store into one of them waits, and so do all maps and unmaps of the
  /// process. The seals are read when the file is first resolved: its client seals it after the device has mapped it.
  [[nodiscard]] std::optional<GuardedWord> resolve(std::uint64_t iova) const;
  /// True if the device may write 8 bytes at `iova`, but by messages only: there is no file, or pages can be taken.
  [[nodiscard]] bool by_message(std::uint64_t iova) const;
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }

 private:
  /// The part of a file that ranges name, in whole pages, mapped once however many ranges there are. The mapping keeps
  /// the inode, and so its number, alive.
  struct File {
    Given memory;
    Given descriptor;  // until `reach` is known
    enum class Reach { kUnknown, kDirect, kByMessage } reach = Reach::kUnknown;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t page = kPageSize;
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
  int open_file(Given file, Range& range);
  int extend(const Given& file, const Range& range, File& known);
  [[nodiscard]] bool is_direct(File& file) const;
  bool charge_bytes(std::uint64_t bytes);
  bool charge_maps(std::size_t maps);
  void settle();

  DmaPool& pool_;
  std::uint64_t bytes_ = 0;  // mapped of files, as the pool knows
  std::size_t maps_ = 0;
  std::map<std::uint64_t, Range> ranges_;
  std::map<FileId, std::weak_ptr<File>> files_;
};

}  // namespace fake_device
