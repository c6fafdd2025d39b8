// SPDX-License-Identifier: Apache-2.0
// A PE that is a process of an MPI program: mpi_pes_openmpi ACTION, mpi_pes_mpich ACTION.
#include <mpi.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace {

int world_rank = 0;
int world_size = 0;

int start(const MPI_Comm* communicator, unsigned timeout = 0) {
  shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
  attr.local_mem_size = 4 << 20;
  attr.shm_init_timeout = timeout;
  attr.comm_args = const_cast<MPI_Comm*>(communicator);
  const int code = shmemx_init_attr(SHMEMX_INIT_WITH_MPI, &attr);
  if (code != 0) {
    std::printf("process %d: shmemx_init_attr gave %d: %s\n", world_rank, code, shmemx_error_text());
  }
  return code;
}

/// Each PE puts its number in the world to the next one. True if it got the right number.
bool hello(int expected_from) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* from = static_cast<int*>(shmem_malloc(sizeof(int)));
  *from = -1;
  shmem_barrier_all();
  shmem_putmem(from, &world_rank, sizeof(world_rank), (me + 1) % pes);
  shmem_barrier_all();
  std::printf("PE %d of %d: hello from %d\n", me, pes, *from);
  const bool right = *from == expected_from;
  shmem_free(from);
  return right;
}

int run_world() {
  for (int i = 0; i < 2; ++i) {
    if (start(nullptr) != 0 || !hello((world_rank + world_size - 1) % world_size)) {
      return 3;
    }
    shmem_finalize();
  }
  return 0;
}

/// The odd and the even processes are separate jobs, in reverse order of the world.
int run_split() {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &size);
  if (start(&half) != 0 || shmem_my_pe() != rank || shmem_n_pes() != size) {
    return 3;
  }
  const int previous = world_rank + 2 < world_size ? world_rank + 2 : world_rank % 2;
  const bool right = hello(previous);
  shmem_finalize();
  MPI_Comm_free(&half);
  return right ? 0 : 4;
}

/// Starts as SHMEM_BOOTSTRAP says.
int run_environment() {
  shmem_init();
  const bool right = hello((world_rank + world_size - 1) % world_size);
  shmem_finalize();
  return right ? 0 : 4;
}

int run_null() {
  const MPI_Comm nothing = MPI_COMM_NULL;
  return start(&nothing) == -EINVAL ? 0 : 3;
}

/// Only process 0 starts the library. MPI still works after that.
int run_late() {
  int code = -ETIMEDOUT;
  if (world_rank == 0) {
    code = start(nullptr, 1);
  }
  for (int rank = 1; rank < world_size && world_rank == 0; ++rank) {
    MPI_Send(&code, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
  }
  if (world_rank != 0) {
    MPI_Recv(&code, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return code == -ETIMEDOUT ? 0 : 3;
}

int run_die() {
  if (start(nullptr) != 0) {
    return 3;
  }
  std::printf("PE %d pid %d started\n", shmem_my_pe(), static_cast<int>(::getpid()));
  std::fflush(stdout);
  shmem_barrier_all();
  if (shmem_my_pe() == 1) {
    ::raise(SIGKILL);
  }
  shmem_barrier_all();
  return 0;
}

int run_exit() {
  if (start(nullptr) != 0) {
    return 3;
  }
  if (shmem_my_pe() == 1) {
    shmem_global_exit(9);
  }
  for (;;) {
    ::pause();
  }
}

/// The library starts before MPI. Both work, whichever ends first.
int run_first(int* argc, char*** argv, bool ends_first) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* ranks = static_cast<int*>(shmem_malloc(static_cast<std::size_t>(pes) * sizeof(int)));
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  for (int pe = 0; pe < pes; ++pe) {
    shmem_int_p(ranks + me, world_rank, pe);
  }
  shmem_barrier_all();
  int sum = 0;
  MPI_Allreduce(&ranks[(me + 1) % pes], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const bool right = world_size == pes && sum == pes * (pes - 1) / 2;
  if (!ends_first) {
    MPI_Finalize();
    shmem_barrier_all();
  }
  shmem_finalize();
  if (ends_first) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  std::printf("PE %d, process %d: %s\n", me, world_rank, right ? "right" : "wrong");
  return right ? 0 : 4;
}

/// Process 1 cannot start, and no process is ended: the others wait for it for so many seconds. With a variable that is
/// wrong it fails before the others have its memory, or `later`, when they may have started.
int run_refused(bool later, unsigned seconds) {
  shmemx_set_errors_return(1);
  if (world_rank == 1) {
    ::setenv(later ? "SHMEM_TRACE" : "SHMEM_BARRIER_TUNING", "/nowhere/file", 1);
  }
  const int code = start(nullptr, seconds);
  if (code == 0) {
    shmem_barrier_all();
    std::printf("process %d: the barrier gave %d: %s\n", world_rank, shmemx_take_error(), shmemx_error_text());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::printf("process %d goes on\n", world_rank);
  return code == 0 && world_rank == 1 ? 3 : 0;
}

int run(const std::string& action, unsigned seconds) {
  const std::map<std::string, std::function<int()>> actions{
      {"refused", [&] { return run_refused(false, seconds); }},
      {"refused-later", [&] { return run_refused(true, seconds); }},
      {"world", run_world},
      {"split", run_split},
      {"environment", run_environment},
      {"null", run_null},
      {"late", run_late},
      {"die", run_die},
      {"exit", run_exit}};
  const auto found = actions.find(action);
  return found != actions.end() ? found->second() : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string action = argc > 1 ? argv[1] : "";
  if (action == "before-mpi") {
    return start(nullptr) == -EINVAL ? 0 : 3;
  }
  if (action == "first" || action == "first-and-last") {
    return run_first(&argc, &argv, action == "first");
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const int code = run(action, argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0);
  MPI_Finalize();
  if (action == "null" && start(nullptr) != -EINVAL) {
    return 3;
  }
  return code;
}
