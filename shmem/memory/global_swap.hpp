// SPDX-License-Identifier: Apache-2.0
// Puts shared memory in the place of a program's data segments, values and addresses kept, and takes it away again.
#pragma once

#include <memory>
#include <vector>

#include "shmem/memory/fd.hpp"
#include "shmem/memory/global_segments.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Memory for ranges, that unmaps itself unless it was put in their place.
class SpareRanges {
 public:
  /// The parts of `file` from `offset` on, one behind the other; shared.
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
  /// Takes the place of the ranges; their old memory is gone. Gives 0 or errno. Stores to nothing but itself.
  int put_in_place();
  /// How many ranges it has taken the place of.
  [[nodiscard]] std::size_t placed() const { return placed_; }

 private:
  explicit SpareRanges(std::vector<GlobalRange> ranges) : ranges_(std::move(ranges)) {}
  static Result<SpareRanges> map(std::vector<GlobalRange> ranges, int flags, int file, std::size_t offset);

  std::vector<GlobalRange> ranges_;
  std::vector<std::byte*> memory_;  // null: not mapped, or put in place
  std::size_t placed_ = 0;
};

/// The ranges stand in shared memory as long as it lives; a child made by fork() gets a copy of its own. One at a time
/// in a process. Made and ended by one thread while others may run: see StoreGuard.
class GlobalSwap {
 public:
  /// The ranges one behind the other in `file`, a memfd that reads as zero there, from `offset` on. `file` may be
  /// closed afterwards. On an Error everything is as before.
  static Result<std::unique_ptr<GlobalSwap>> begin(std::vector<GlobalRange> ranges, int file, std::size_t offset);
  GlobalSwap(const GlobalSwap&) = delete;
  GlobalSwap& operator=(const GlobalSwap&) = delete;
  /// The ranges stand in memory of this process again, with the values that they have then. REQUIRES: no other PE
  /// stores there any more.
  ~GlobalSwap();

  /// Into `spare`, made for the ranges: what they hold now. Stores to nothing else.
  void copy_to(const SpareRanges& spare) const;
  [[nodiscard]] const std::vector<GlobalRange>& ranges() const { return ranges_; }

 private:
  GlobalSwap(std::vector<GlobalRange> ranges, UniqueFd file, std::size_t offset);
  [[nodiscard]] bool still_has_file() const;

  std::vector<GlobalRange> ranges_;
  UniqueFd file_;
  std::size_t offset_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the file: programs close descriptors that they did not open
};

}  // namespace shmem
