// SPDX-License-Identifier: Apache-2.0
// The memory that all PEs of a node map: a sparse memfd with every PE's symmetric heap, and another with every PE's
// metadata area, the board, and every PE's global variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/config/heap_placement.hpp"
#include "shmem/result.hpp"

namespace shmem {

constexpr std::size_t kMetadataSize = std::size_t{32} << 20;
/// The end of PE 0's metadata area, for pages_reason(): hundreds of PEs do not keep a text each.
constexpr std::size_t kNotesSize = 4096;
/// Each PE's share of the board. Every PE reads every PE's words there, so they are contiguous: a page table serves 2
/// MiB, and hundreds of PEs that each map a page in hundreds of metadata areas need a page table for each.
constexpr std::size_t kBoardShare = std::size_t{64} << 20;
/// Heaps are multiples of this, and are aligned to it in every PE's address space: the size of a huge page.
constexpr std::size_t kHeapAlignment = std::size_t{2} << 20;

/// Owns the mappings. Heaps are at base + pe * heap_size, so this PE's address + heap_size is the same object of the
/// next PE. A PE's own heap is aligned to every power of two up to its size: an alignment of an offset is one of the
/// address. All of it is zero at first and has no name in a file system.
class NodeMemory {
 public:
  /// Collective over the job. The leader makes the memfds and hands them out. `heap_size` is rounded up to
  /// kHeapAlignment. All PEs succeed or all get an Error, which names the PEs and their sizes if those differ, or the
  /// PE that failed, or did not fetch its memory within `limit`. The heaps get the pages that the leader asks for, or
  /// smaller ones, and each PE's own is placed where that PE asks; see placement(). REQUIRES: `globals_size` is a
  /// multiple of the page size, the same on all PEs.
  static Result<NodeMemory> create(Bootstrap& bootstrap, std::size_t heap_size, std::size_t globals_size = 0,
                                   PlacementRequest request = {}, std::chrono::milliseconds limit = kBootstrapLimit);

  /// Not collective: the memory that the other PEs have made, which a process maps that takes the place of a PE. Its
  /// heap, and its metadata area, are zero afterwards. REQUIRES: the PE's last process has ended.
  static Result<NodeMemory> take_over(const Bootstrap& bootstrap, NodeFds files, std::size_t heap_size,
                                      std::size_t globals_size, const PlacementRequest& request);
  /// Whether the process of another PE, which need not be visible here, has ended: one system call. False if the
  /// request had no folder, or for this PE.
  [[nodiscard]] bool has_died(int pe) const;
  /// Open for processes that take the place of PEs; -1 after drop_files(), unless has_died() needs them.
  [[nodiscard]] const NodeFds& files() const { return files_; }
  /// Closes what this process does not need itself.
  void drop_files();

  [[nodiscard]] std::size_t heap_size() const { return heap_size_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  /// Why the pages of the heaps are not as large as requested, or "".
  [[nodiscard]] std::string pages_reason() const;
  [[nodiscard]] std::byte* heap(int pe) const { return heaps_.data() + static_cast<std::size_t>(pe) * heap_size_; }
  [[nodiscard]] std::byte* metadata(int pe) const {
    return areas_.data() + static_cast<std::size_t>(pe) * kMetadataSize;
  }
  /// kBoardShare bytes for each PE of the node.
  [[nodiscard]] std::byte* board() const { return metadata(pes_); }

  [[nodiscard]] std::size_t globals_size() const { return globals_size_; }
  [[nodiscard]] std::byte* globals(int pe) const {
    return board() + static_cast<std::size_t>(pes_) * kBoardShare + static_cast<std::size_t>(pe) * globals_size_;
  }
  /// The file of the globals, for a second mapping, and the offset of globals(pe) there. REQUIRES: globals_size() > 0.
  [[nodiscard]] int file() const { return files_.areas.get(); }
  [[nodiscard]] std::size_t globals_offset(int pe) const {
    return static_cast<std::size_t>(globals(pe) - areas_.data());
  }

 private:
  NodeMemory(base::Mapping heaps, base::Mapping areas, NodeFds files, Placement placement, std::size_t heap_size,
             std::size_t globals_size, int pes, bool has_locks);
  Result<void> clear_parts_of(int pe) const;

  bool has_locks_;
  base::Mapping heaps_;
  base::Mapping areas_;  // metadata, board, globals
  NodeFds files_;
  Placement placement_;
  std::size_t heap_size_;
  std::size_t globals_size_;
  int pes_;
};

}  // namespace shmem
