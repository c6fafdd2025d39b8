// SPDX-License-Identifier: Apache-2.0
// Two PEs. After each barrier PE 0 computes, without a call of the library, until PE 1 has left the barrier too. They
// end when PE 1 has completed a barrier in software.
//
//   computing FILE      shared by the PEs
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

struct Board {
  std::atomic<std::uint64_t> left;  // the last barrier that PE 1 has left
  std::atomic<bool> over;           // that barrier is the last; written before `left`
};

Board* map_board(const char* file) {
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Board*>(memory);
}

std::uint64_t done_in_software() {
  shmemx_team_info_t info;
  shmemx_team_info(SHMEM_TEAM_WORLD, &info);
  return info.by_software;
}

}  // namespace

PE_PART(computing) {
  Board* const board = argc > 1 ? map_board(argv[1]) : nullptr;
  if (board == nullptr) {
    return 2;
  }
  shmem_init();
  const bool computes = shmem_my_pe() == 0;
  const std::uint64_t at_start = done_in_software();
  for (std::uint64_t k = 1; !board->over; ++k) {
    shmem_barrier_all();
    if (computes) {
      while (board->left.load(std::memory_order_acquire) < k) {
      }
    } else {
      if (k == 10) {
        std::printf("started\n");
        std::fflush(stdout);
      }
      board->over = done_in_software() > at_start;
      board->left.store(k, std::memory_order_release);
    }
  }
  std::printf("over, without the device\n");
  shmem_finalize();
  return 0;
}
