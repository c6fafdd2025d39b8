// SPDX-License-Identifier: Apache-2.0
// The collective side of global variables: all PEs share theirs or none does; and where those of other PEs are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/memory/global_swap.hpp"
#include "shmem/memory/memory_range.hpp"
#include "shmem/memory/node_memory.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// A PE shares its globals with the PEs that run the same program with the same libraries; for other PEs none of its
/// globals is symmetric. Fixed between share() and release(), when any thread may call locate().
class SymmetricGlobals {
 public:
  /// Nothing is shared.
  SymmetricGlobals() = default;

  /// Collective: compares the programs. If a PE does not want to share (`why_not` gives its reason), no PE does.
  static Result<SymmetricGlobals> plan(Bootstrap& bootstrap, const GlobalImage& image, const std::string& why_not);
  /// The same if only the PEs `here` of the job share memory; numbers of PEs below are among those.
  void only_here(const std::vector<int>& here);

  /// The bytes per PE that NodeMemory must provide, the same on all PEs.
  [[nodiscard]] std::size_t size() const { return stride_; }

  /// Collective, and a barrier: all PEs move their globals into `memory`, which outlives this. If a PE fails, none
  /// does, and why_not() gives the reason.
  Result<void> share(Bootstrap& bootstrap, const NodeMemory& memory);

  /// Moves the globals back into this process. Call it after a barrier that follows the last access of another PE.
  void release();

  /// The same object of `pe`, or nothing if `mine` is not a global of this PE or `pe` has other globals.
  [[nodiscard]] MemoryRange locate(const void* mine, int pe) const {
    for (const Entry& entry : entries_) {
      const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(mine) - entry.begin;
      if (offset >= entry.size) {
        continue;
      }
      if (!all_same_ && !same_[static_cast<std::size_t>(pe)]) {
        return {};
      }
      std::byte* theirs = first_ + static_cast<std::size_t>(pe) * stride_ + entry.offset + offset;
      // This PE's own are at the address that the program uses.
      auto* own = const_cast<std::byte*>(static_cast<const std::byte*>(mine));
      return {pe == me_ ? own : theirs, entry.size - offset};
    }
    return {};
  }

  /// The same object among the globals that PE `pe` of the job shares, also if it shares them elsewhere.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const void* mine, std::size_t bytes, int pe) const {
    for (const Entry& entry : entries_) {
      const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(mine) - entry.begin;
      if (offset >= entry.size) {
        continue;
      }
      const bool has_it = all_same_ || same_everywhere_[static_cast<std::size_t>(pe)];
      return has_it && bytes <= entry.size - offset ? std::optional(entry.offset + offset) : std::nullopt;
    }
    return std::nullopt;
  }

  /// All PEs of the job have the globals that this PE has, so that one check stands for all PEs.
  [[nodiscard]] bool same_on_all() const { return all_same_; }

  /// This PE's, in the order of memory.globals(pe), contiguous there; empty unless they are shared.
  [[nodiscard]] std::span<const GlobalRange> shared_ranges() const {
    return entries_.empty() ? std::span<const GlobalRange>() : ranges_;
  }
  /// Why no globals are shared; "" if they are.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// "3 ranges, 68 KiB".
  [[nodiscard]] std::string describe() const;
  /// True if `mine` is a global of this PE that could be shared, but not with PE `pe` of the job, which runs another
  /// program.
  [[nodiscard]] bool differs(const void* mine, int pe) const;

 private:
  struct Entry {
    std::uintptr_t begin;
    std::size_t size;
    std::size_t offset;  // in the PE's part of the memory
  };

  std::vector<Entry> entries_;  // empty unless shared
  std::byte* first_ = nullptr;  // globals of PE 0
  std::size_t stride_ = 0;
  int me_ = 0;
  std::vector<bool> same_;             // by PE: does it have the same globals?
  std::vector<bool> same_everywhere_;  // by PE of the job, if same_ covers only those here
  bool all_same_ = false;
  std::vector<GlobalRange> ranges_;
  std::string why_not_ = "the library has not started";
  std::unique_ptr<GlobalSwap> swap_;
};

}  // namespace shmem
