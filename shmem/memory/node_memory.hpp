// SPDX-License-Identifier: Apache-2.0
// The memory that all PEs of a node map: a sparse memfd with every PE's symmetric heap, and another with every PE's
// metadata area, then the board that all of them read, then every PE's global variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/memory/heap_placement.hpp"
#include "shmem/memory/mapping.hpp"
#include "shmem/result.hpp"

namespace shmem {

constexpr std::size_t kMetadataSize = std::size_t{32} << 20;
/// The end of PE 0's metadata area, for pages_reason(): hundreds of PEs do not keep a text each.
constexpr std::size_t kNotesSize = 4096;
/// What each PE adds to the board. Everybody reads everybody's words there: they stand together, because a page table
/// serves 2 MiB, and hundreds of PEs that each map a page in hundreds of metadata areas have a page table for each.
constexpr std::size_t kBoardShare = std::size_t{32} << 20;
/// Heaps are multiples of this, and begin at such in the address space of every PE: the size of a huge page.
constexpr std::size_t kHeapAlignment = std::size_t{2} << 20;

/// Owns the mappings. Heaps stand at base + pe * heap_size, so my address + heap_size is the same object of the next
/// PE. A PE's own heap begins at a multiple of every power of two that is no larger than the heap: an alignment of an
/// offset is one of the address. All of it reads as zero at first, and none of it has a name in a file system.
class NodeMemory {
 public:
  /// Collective over the job. The leader makes the memfds and hands them out. `heap_size` is rounded up to
  /// kHeapAlignment. All PEs succeed or all get an Error: PEs that ask for different sizes are told who asked for what,
  /// and a failure of one PE is told to the others. The heaps get the pages that the leader asks for, or smaller ones,
  /// and each PE's own lies where that PE asks for; what came of it says placement(). REQUIRES: `globals_size` is a
  /// multiple of the page size, the same on all PEs.
  static Result<NodeMemory> create(Bootstrap& bootstrap, std::size_t heap_size, std::size_t globals_size = 0,
                                   PlacementRequest request = {});

  [[nodiscard]] std::size_t heap_size() const { return heap_size_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  /// Why the pages of the heaps are not larger, if that was tried, or "".
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
  /// Where globals(pe) stand in file(), to be mapped once more. REQUIRES: globals_size() > 0.
  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] std::size_t globals_offset(int pe) const {
    return static_cast<std::size_t>(globals(pe) - areas_.data());
  }

 private:
  NodeMemory() = default;

  Mapping heaps_;
  Mapping areas_;  // metadata, board, globals
  UniqueFd file_;  // of the areas; none if there are no globals
  Placement placement_;
  std::size_t heap_size_ = 0;
  std::size_t globals_size_ = 0;
  int pes_ = 0;
};

}  // namespace shmem
