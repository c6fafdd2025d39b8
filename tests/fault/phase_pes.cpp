// SPDX-License-Identifier: Apache-2.0
// A PE that repeats one action until it is killed.
//
//   phase_pes init|malloc|split|barrier|put|lock|sum|wait|finalize
//       put: from PE 0 to the last PE; the others do nothing        wait: for a word that no PE changes
#include <shmem.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

[[noreturn]] void repeat(const char* phase) {
  const bool in_job = std::strcmp(phase, "init") != 0 && std::strcmp(phase, "finalize") != 0;
  if (in_job) {
    shmem_init();
  }
  for (;;) {
    if (std::strcmp(phase, "init") == 0) {
      begin_and_end(0);
    } else if (std::strcmp(phase, "finalize") == 0) {
      // PEs that finish at different times wait for each other in shmem_finalize.
      begin_and_end(static_cast<useconds_t>(::getpid()) % 16 * 500);
    } else if (std::strcmp(phase, "malloc") == 0) {
      allocate();
    } else if (std::strcmp(phase, "split") == 0) {
      split();
    } else if (std::strcmp(phase, "put") == 0) {
      put();
    } else if (std::strcmp(phase, "lock") == 0) {
      lock_and_release();
    } else if (std::strcmp(phase, "sum") == 0) {
      sum();
    } else if (std::strcmp(phase, "wait") == 0) {
      wait_for_word();
    } else {
      shmem_barrier_all();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("OSHRUN_RANK");
  std::printf("PE %s pid %d started\n", rank == nullptr ? "?" : rank, static_cast<int>(::getpid()));
  std::fflush(stdout);
  repeat(argc > 1 ? argv[1] : "barrier");
}
