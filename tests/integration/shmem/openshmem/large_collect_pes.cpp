// SPDX-License-Identifier: Apache-2.0
// PEs that collect far more data than they may allocate outside their symmetric heaps.
#include <sys/resource.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

constexpr std::size_t kWords = std::size_t{3} << 20;  // of the largest block: 24 MiB
constexpr std::size_t kSpare = std::size_t{40} << 20;

/// The memory of this process that counts towards RLIMIT_DATA; shared memory does not.
std::size_t data_used() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmData:" && status >> kilobytes) {
      return kilobytes << 10;
    }
  }
  return 0;
}

std::uint64_t word_of(int pe, std::size_t i) {
  return static_cast<std::uint64_t>(pe + 1) << 32 | i;
}

/// PE i's block has `words(i)` words.
template <typename Words>
int check(const char* what, const std::uint64_t* all, Words words) {
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    for (std::size_t i = 0; i < words(pe); ++i, ++all) {
      if (*all != word_of(pe, i)) {
        std::printf("PE %d: %s: word %zu of PE %d is wrong\n", shmem_my_pe(), what, i, pe);
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace

PE_PART(large_collect) {
  shmem_init();
  const int me = shmem_my_pe();
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  auto* mine = static_cast<std::uint64_t*>(shmem_malloc(kWords * sizeof(std::uint64_t)));
  auto* all = static_cast<std::uint64_t*>(shmem_malloc(pes * kWords * sizeof(std::uint64_t)));
  for (std::size_t i = 0; i < kWords; ++i) {
    mine[i] = word_of(me, i);
  }
  shmem_uint64_fcollect(SHMEM_TEAM_WORLD, all, mine, 1);  // the network has allocated its own memory now
  const std::size_t most = data_used() + kSpare;
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) {
    std::perror("setrlimit");
    return 2;
  }
  shmem_uint64_fcollect(SHMEM_TEAM_WORLD, all, mine, kWords);
  int wrong = check("fcollect", all, [](int) { return kWords; });
  shmem_barrier_all();
  const auto words = [](int pe) { return kWords - static_cast<std::size_t>(pe) * 12345; };
  shmem_uint64_collect(SHMEM_TEAM_WORLD, all, mine, words(me));
  wrong += check("collect", all, words);
  shmem_finalize();
  return wrong;
}
