// SPDX-License-Identifier: Apache-2.0
// The collective side of global variables: all PEs share theirs, or none does; and where the others' are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/memory/global_swap.hpp"
#include "shmem/memory/node_memory.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// An address and the bytes from there on that belong together; null: there is none.
struct Place {
  std::byte* address = nullptr;
  std::size_t room = 0;
};

/// A PE shares its globals with those that run the same program with the same libraries; towards the others none of
/// its globals is symmetric. Fixed between share() and release(); then locate() may be called by any thread.
class SymmetricGlobals {
 public:
  /// None are shared.
  SymmetricGlobals() = default;

  /// Collective: compares the programs. If some PE does not want it (`why_not` says why), nobody shares.
  static Result<SymmetricGlobals> plan(Bootstrap& bootstrap, const GlobalImage& image, const std::string& why_not);
  /// The same where only the PEs `here` of the job share memory; numbers of PEs below are among those.
  void only_here(const std::vector<int>& here);

  /// How much NodeMemory is to have for each PE, the same on all.
  [[nodiscard]] std::size_t size() const { return stride_; }

  /// Collective, and a barrier: all PEs put their globals into `memory`, which outlives this. If some PE cannot, nobody
  /// does, and why_not() says why.
  Result<void> share(Bootstrap& bootstrap, const NodeMemory& memory);

  /// The globals are this process's own again. After a barrier behind the last access of another PE.
  void release();

  /// The same object of `pe`, or nothing if `mine` is no global of mine or `pe` has not the same globals.
  [[nodiscard]] Place locate(const void* mine, int pe) const {
    for (const Entry& entry : entries_) {
      const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(mine) - entry.begin;
      if (offset >= entry.size) continue;
      if (!all_same_ && !same_[static_cast<std::size_t>(pe)]) return {};
      std::byte* theirs = first_ + static_cast<std::size_t>(pe) * stride_ + entry.offset + offset;
      // My own stand at the address that my program knows.
      auto* own = const_cast<std::byte*>(static_cast<const std::byte*>(mine));
      return {pe == me_ ? own : theirs, entry.size - offset};
    }
    return {};
  }

  /// Where the same object stands in what PE `pe` of the job shares, also if it shares it elsewhere.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const void* mine, std::size_t bytes, int pe) const {
    for (const Entry& entry : entries_) {
      const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(mine) - entry.begin;
      if (offset >= entry.size) continue;
      const bool has_it = all_same_ || same_everywhere_[static_cast<std::size_t>(pe)];
      return has_it && bytes <= entry.size - offset ? std::optional(entry.offset + offset) : std::nullopt;
    }
    return std::nullopt;
  }

  /// Mine, in the order in which they stand in memory.globals(pe), one behind the other; none unless they are shared.
  [[nodiscard]] std::span<const GlobalRange> shared_ranges() const {
    return entries_.empty() ? std::span<const GlobalRange>() : ranges_;
  }
  /// Why no globals are shared; "" if they are.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// "3 ranges, 68 KiB".
  [[nodiscard]] std::string describe() const;
  /// True if `mine` is a global of mine that could be shared, but not with PE `pe` of the job: that runs another
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
  std::vector<bool> same_;             // of each PE: has it my globals?
  std::vector<bool> same_everywhere_;  // of each PE of the job, where same_ is about those here
  bool all_same_ = false;
  std::vector<GlobalRange> ranges_;
  std::string why_not_ = "the library has not started";
  std::unique_ptr<GlobalSwap> swap_;
};

}  // namespace shmem
