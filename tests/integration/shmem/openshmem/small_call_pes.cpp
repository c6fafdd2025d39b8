// SPDX-License-Identifier: Apache-2.0
// Small collective calls of two PEs in which none has to wait, for counting their instructions:
//   small_call CALL ROUNDS
// PE 1 makes each call after PE 0 has made it. CALL: broadcast, scan (both of the world) or set (a broadcast of an
// active set). No other call is of the same name.
#include "tests/integration/shmem/pe_checks.hpp"

PE_PART(small_call) {
  if (argc != 3) {
    return 2;
  }
  shmem_init();
  auto* const to = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  auto* const from = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  auto* const psync = static_cast<long*>(shmem_calloc(SHMEM_SYNC_SIZE, sizeof(long)));
  auto* const word = static_cast<int*>(shmem_calloc(1, sizeof(int)));
  const std::function<void()> broadcast = [=] { shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, 1, 0); };
  const std::function<void()> scan = [=] { shmem_long_sum_inscan(SHMEM_TEAM_WORLD, to, from, 1); };
  const std::function<void()> set = [=] { shmem_broadcast64(to, from, 1, 0, 0, 0, 2, psync); };
  const bool of_set = std::strcmp(argv[1], "set") == 0;
  const auto& call = of_set ? set : std::strcmp(argv[1], "scan") == 0 ? scan : broadcast;
  shmem_broadcast32(word, word, 1, 0, 0, 0, 2, psync);  // makes the set's team
  shmem_barrier_all();
  const long rounds = std::atol(argv[2]);
  for (long round = 1; round <= rounds; ++round) {
    *from = round;
    if (shmem_my_pe() == 0) {
      call();
    }
    shmem_barrier_all();
    if (shmem_my_pe() == 1) {
      call();
      const long expected = &call == &scan ? 2 * round : round;
      if (*to != expected) {
        std::fprintf(stderr, "round %ld: %ld\n", round, *to);
        shmem_global_exit(1);
      }
    }
    shmem_barrier_all();
  }
  shmem_finalize();
  return 0;
}
