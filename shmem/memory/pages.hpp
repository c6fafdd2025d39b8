// SPDX-License-Identifier: Apache-2.0
// The memory of symmetric heaps: NUMA nodes and page sizes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "shmem/config/heap_placement.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The interface to the system.
class Numa {
 public:
  Numa() = default;
  Numa(const Numa&) = delete;
  Numa& operator=(const Numa&) = delete;
  virtual ~Numa() = default;

  /// Nodes from which this process may allocate; empty if the system has no NUMA.
  [[nodiscard]] virtual std::vector<int> nodes() const = 0;
  /// The node of the processor that the calling thread runs on, or -1.
  [[nodiscard]] virtual int my_node() const = 0;
  /// mbind: 0 or errno.
  virtual int bind(std::byte* start, std::size_t size, int mode, const std::vector<int>& nodes) = 0;
};

/// The real one.
Numa& system_numa();

/// The placement of a heap, for Placement.
struct NumaPlacement {
  std::string text;
  std::string reason;
};

/// Requests that the pages of this PE's heap come from where `policy` says, whichever PE touches them first; call it
/// before that. If a node is full the pages come from another one. That, and a system without NUMA policies, is not an
/// error.
NumaPlacement place(std::byte* heap, std::size_t size, NumaPolicy policy, Numa& numa);

/// The kernel's settings for transparent huge pages.
constexpr const char* kThpFolder = "/sys/kernel/mm/transparent_hugepage";

struct HeapFile {
  base::UniqueFd file;
  PageKind pages;
  std::string reason;  // why the pages are not those that were tried first, or ""
};

/// A sealed memfd of `size` bytes, a multiple of 2 MiB. Huge pages of the pool are reserved here, so that they cannot
/// be missing later, except under a control group that limits them (populate()). Falls back to smaller pages; an Error
/// only if there is no memfd at all.
Result<HeapFile> create_heap_file(std::size_t size, HugePages wanted, const std::string& thp_folder = kThpFolder);

/// Requests transparent huge pages in a mapping of kThp. Their absence is not an error.
void advise_huge_pages(std::byte* start, std::size_t size);

/// Touches all of a mapping of kHugetlb, so that it can raise no SIGBUS later. The pages come from where this thread's
/// NUMA policy and that of the mapping say.
Result<void> populate(std::byte* start, std::size_t size);

/// "" if memfds may have transparent huge pages on request; else the setting that prevents it.
std::string thp_obstacle(const std::string& thp_folder);

/// "hugetlb", "thp", "4 KiB".
std::string to_string(PageKind pages);

}  // namespace shmem
