// SPDX-License-Identifier: Apache-2.0
// A PE that does one thing again and again until it is killed.
//
//   phase_pes init|malloc|split|barrier|put|finalize      put: PE 0, to the last one; the others do nothing
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

[[noreturn]] void repeat(const char* phase) {
  const bool in_job = std::strcmp(phase, "init") != 0 && std::strcmp(phase, "finalize") != 0;
  if (in_job) {
    shmem_init();
  }
  for (;;) {
    if (std::strcmp(phase, "init") == 0) {
      begin_and_end(0);
    } else if (std::strcmp(phase, "finalize") == 0) {
      // PEs that come to the end at different times wait for each other there.
      begin_and_end(static_cast<useconds_t>(::getpid()) % 16 * 500);
    } else if (std::strcmp(phase, "malloc") == 0) {
      allocate();
    } else if (std::strcmp(phase, "split") == 0) {
      split();
    } else if (std::strcmp(phase, "put") == 0) {
      put();
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
