// SPDX-License-Identifier: Apache-2.0
// A PE that repeats one action until it is killed.
//
//   phase init|malloc|split|barrier|put|lock|sum|wait|finalize
//       put: from PE 0 to the last PE; the others do nothing        wait: for a word that no PE changes
#include "tests/integration/shmem/pe_checks.hpp"

namespace {

void begin_and_end(useconds_t between) {
  shmem_init();
  ::usleep(between);
  shmem_finalize();
}

void allocate() {
  void* block = shmem_malloc(100000);
  if (block == nullptr) {
    std::exit(3);
  }
  shmem_free(block);
}

void split() {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &team) != 0) {
    std::exit(4);
  }
  shmem_team_destroy(team);
}

void put() {
  static long word = 0;
  if (shmem_my_pe() != 0) {
    ::pause();
  }
  shmem_long_p(&word, 1, shmem_n_pes() - 1);
  shmem_quiet();
}

void lock_and_release() {
  static long lock = 0;
  shmem_set_lock(&lock);
  shmem_clear_lock(&lock);
}

void sum() {
  static long mine[1000];
  static long all[1000];
  if (shmem_long_sum_reduce(SHMEM_TEAM_WORLD, all, mine, 1000) != 0) {
    std::exit(5);
  }
}

void wait_for_word() {
  static long word = 0;
  shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
}

struct Phase {
  std::string_view name;
  void (*once)();
  bool in_job = true;  // between shmem_init and shmem_finalize
};
constexpr Phase kPhases[] = {
    {"init", [] { begin_and_end(0); }, false},
    // PEs that finish at different times wait for each other in shmem_finalize.
    {"finalize", [] { begin_and_end(static_cast<useconds_t>(::getpid()) % 16 * 500); }, false},
    {"malloc", allocate},
    {"split", split},
    {"put", put},
    {"lock", lock_and_release},
    {"sum", sum},
    {"wait", wait_for_word},
    {"barrier", shmem_barrier_all},
};

[[noreturn]] void repeat(const Phase& phase) {
  if (phase.in_job) {
    shmem_init();
    std::printf("PE %d is in the job\n", shmem_my_pe());
    std::fflush(stdout);
  }
  for (;;) {
    phase.once();
  }
}

}  // namespace

PE_PART(phase) {
  const std::string_view wanted = argc > 1 ? argv[1] : "barrier";
  const auto* const phase = std::ranges::find(kPhases, wanted, &Phase::name);
  if (phase == std::end(kPhases)) {
    std::fprintf(stderr, "phase_pes: no such phase: %s\n", argv[1]);
    return 2;
  }
  const char* rank = std::getenv("OSHRUN_RANK");
  std::printf("PE %s pid %d started\n", rank == nullptr ? "?" : rank, static_cast<int>(::getpid()));
  std::fflush(stdout);
  repeat(*phase);
}
