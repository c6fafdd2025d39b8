// SPDX-License-Identifier: Apache-2.0
// A PE that makes each kind of call COUNT times and then prints the size of its private memory.
//
//   whole_life COUNT
//   start_cost
#include <sys/resource.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

/// The sum of the kB values of these names in a file of /proc.
long sum_of(const char* file, const std::vector<std::string>& names) {
  std::ifstream stream(file);
  long sum = 0;
  for (std::string word; stream >> word;) {
    for (const std::string& name : names) {
      long value = 0;
      if (word == name && stream >> value) {
        sum += value;
      }
    }
  }
  return sum;
}

int run(int count) {
  std::vector<void*> blocks;
  std::vector<shmem_team_t> teams(static_cast<std::size_t>(count), SHMEM_TEAM_INVALID);
  for (int i = 0; i < count; ++i) {
    blocks.push_back(shmem_malloc(1000));
    if (blocks.back() == nullptr) {
      return 3;
    }
  }
  for (auto& team : teams) {
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &team) != 0) {
      return 4;
    }
  }
  for (int i = 0; i < count; ++i) {
    shmem_barrier_all();
  }
  // Memory that this process alone has written, and its page tables, which also map the heaps of all PEs. Clean pages
  // are the files': how much of a library only this PE has run says nothing.
  const long own = sum_of("/proc/self/smaps_rollup", {"Private_Dirty:"});
  std::printf("PE %d: private kB %ld, page tables kB %ld\n", shmem_my_pe(), own,
              sum_of("/proc/self/status", {"VmPTE:"}));
  std::fflush(stdout);
  shmem_barrier_all();
  for (const auto team : teams) {
    shmem_team_destroy(team);
  }
  for (void* block : blocks) {
    shmem_free(block);
  }
  return 0;
}

}  // namespace

namespace {

/// What this process has asked of the kernel so far.
struct Asked {
  long faults = 0;  // pages
  long reads = 0;   // system calls that read files
};
Asked asked() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_minflt, sum_of("/proc/self/io", {"syscr:"})};
}

}  // namespace

/// Prints what shmem_init has taken.
PE_PART(start_cost) {
  const Asked before = asked();
  shmem_init();
  const Asked after = asked();
  std::printf("PE %d: page faults %ld, reads %ld\n", shmem_my_pe(), after.faults - before.faults,
              after.reads - before.reads);
  std::fflush(stdout);
  shmem_finalize();
  return 0;
}

PE_PART(whole_life) {
  shmem_init();
  const int status = run(argc > 1 ? std::atoi(argv[1]) : 10);
  shmem_finalize();
  return status;
}
