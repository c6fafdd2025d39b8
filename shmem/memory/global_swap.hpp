// SPDX-License-Identifier: Apache-2.0
// Replaces a program's data segments by shared memory, with the same values and addresses, and undoes that.
#pragma once

#include <memory>
#include <vector>

#include "base/fd.hpp"
#include "shmem/memory/global_segments.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Memory for ranges; unmaps itself unless it has replaced them.
class SpareRanges {
 public:
  /// The parts of `file` from `offset` on, in order; shared.
  static Result<SpareRanges> of_file(std::vector<GlobalRange> ranges, int file, std::size_t offset);
  /// Zero, and this process's own.
  static Result<SpareRanges> of_process(std::vector<GlobalRange> ranges);
  SpareRanges(const SpareRanges&) = delete;
  SpareRanges& operator=(const SpareRanges&) = delete;
  SpareRanges(SpareRanges&&) = default;
  SpareRanges& operator=(SpareRanges&&) = delete;
  ~SpareRanges();

  /// The memory for the i-th range.
  [[nodiscard]] std::byte* memory(std::size_t i) const { return memory_[i]; }
  /// Replaces the ranges; their old memory is gone. Returns 0 or errno. Stores only to itself.
  int put_in_place();
  /// The number of ranges that it has replaced.
  [[nodiscard]] std::size_t placed() const { return placed_; }

 private:
  explicit SpareRanges(std::vector<GlobalRange> ranges) : ranges_(std::move(ranges)) {}
  static Result<SpareRanges> map(std::vector<GlobalRange> ranges, int flags, int file, std::size_t offset);

  std::vector<GlobalRange> ranges_;
  std::vector<std::byte*> memory_;  // null: not mapped, or in place
  std::size_t placed_ = 0;
};

/// The ranges are in shared memory while it lives. One at a time in a process. REQUIRES: while it is made and destroyed
/// no other thread stores into the ranges; such a store may be lost.
///
/// fork() shares no range with the child. The child's copy is made before the child: a copy made by the child would
/// contain the parent's later stores. A child that cannot get its copy ends with a message. Not covered: _Fork(),
/// clone(), and handlers of pthread_atfork that were registered before this library was loaded, which run first in the
/// child. vfork(), posix_spawn() and system() need nothing.
class GlobalSwap {
 public:
  /// Moves the ranges in order into `file`, a memfd that reads as zero there, from `offset` on. `file` may be closed
  /// afterwards. After an Error everything is as before.
  static Result<std::unique_ptr<GlobalSwap>> begin(std::vector<GlobalRange> ranges, int file, std::size_t offset);
  GlobalSwap(const GlobalSwap&) = delete;
  GlobalSwap& operator=(const GlobalSwap&) = delete;
  /// Moves the ranges back into memory of this process; they keep their values. REQUIRES: no other PE stores there any
  /// more.
  ~GlobalSwap();

  /// Copies the ranges' current contents into `spare`, made for them. Stores to nothing else.
  void copy_to(const SpareRanges& spare) const;
  [[nodiscard]] const std::vector<GlobalRange>& ranges() const { return ranges_; }

 private:
  GlobalSwap(std::vector<GlobalRange> ranges, base::UniqueFd file, std::size_t offset);
  [[nodiscard]] bool still_has_file() const;

  std::vector<GlobalRange> ranges_;
  base::UniqueFd file_;
  std::size_t offset_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the file, because programs close descriptors that they did not open
};

}  // namespace shmem
