// SPDX-License-Identifier: Apache-2.0
// A PE that touches its heap and prints the kind of the heap's pages. With "wait" it stays until it is killed; with
// "locked" it locks its memory before it starts the library.
#include <sys/mman.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

/// The KiB that `key` of /proc/self/smaps counts in the mapping that contains `address`.
unsigned long mapped(const void* address, const std::string& key) {
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long start = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &start, &end) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      here = start <= at && at < end;
    } else if (here && line.rfind(key + ":", 0) == 0) {
      return std::stoul(line.substr(key.size() + 1));
    }
  }
  return 0;
}

}  // namespace

PE_PART(heap_pages) {
  constexpr std::size_t kSize = std::size_t{4} << 20;
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "locked" && ::mlockall(MCL_FUTURE) != 0) {
    std::perror("cannot lock memory");
    return 1;
  }
  shmem_init();
  auto* block = static_cast<char*>(shmem_malloc(kSize));
  std::memset(block, 1, kSize);
  // The neighbour's heap too: the heap has huge pages whichever PE touches them first.
  const int right = (shmem_my_pe() + 1) % shmem_n_pes();
  shmem_barrier_all();
  shmem_putmem(block + kSize / 2, block, kSize / 2, right);
  shmem_barrier_all();
  shmemx_heap_stats_t stats;
  shmemx_heap_stats(&stats);
  std::printf("pages %s; numa %s; reason %s; thp %lu kB, hugetlb %lu kB\n", stats.pages, stats.numa, stats.reason,
              mapped(block, "ShmemPmdMapped"), mapped(block, "Shared_Hugetlb") + mapped(block, "Private_Hugetlb"));
  std::fflush(stdout);
  shmem_barrier_all();
  if (how == "wait") {
    for (;;) {
      ::pause();
    }
  }
  shmem_finalize();
  return 0;
}
