// SPDX-License-Identifier: Apache-2.0
// The file that the symmetric heaps of a node are in, with the largest pages that can be had.
#pragma once

#include <cstddef>
#include <string>

#include "shmem/memory/fd.hpp"
#include "shmem/memory/heap_placement.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Where the kernel says what it does about transparent huge pages.
constexpr const char* kThpFolder = "/sys/kernel/mm/transparent_hugepage";

struct HeapFile {
  UniqueFd file;
  PageKind pages;
  std::string reason;  // why the pages are not those that were tried before, or ""
};

/// A sealed memfd of `size` bytes, a multiple of 2 MiB. Huge pages of the pool are reserved before it is given out:
/// they cannot be missing when they are touched, but for a control group that limits them (populate()). Falls back to
/// smaller pages; an Error only if there is no memfd at all.
Result<HeapFile> create_heap_file(std::size_t size, HugePages wanted, const std::string& thp_folder = kThpFolder);

/// Asks for transparent huge pages in a mapping of kThp. It is no error if there are none.
void advise_huge_pages(std::byte* start, std::size_t size);

/// Touches all of a mapping of kHugetlb, so that it can raise no SIGBUS. The pages come from where this thread's NUMA
/// policy and that of the mapping say.
Result<void> populate(std::byte* start, std::size_t size);

/// "" if memfds may have transparent huge pages where they ask for them; else the setting that is in the way.
std::string thp_obstacle(const std::string& thp_folder);

/// "hugetlb", "thp", "4 KiB".
std::string to_string(PageKind pages);

}  // namespace shmem
