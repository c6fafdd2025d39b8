// SPDX-License-Identifier: Apache-2.0
// The library that is measured: libshmem or, built by Open MPI's compilers with BENCH_OPENMPI_SHMEM or
// BENCH_OPENMPI_MPI, theirs.
#pragma once

#ifdef BENCH_OPENMPI_MPI
#include <mpi.h>
#else
#include <shmem.h>
#endif

namespace bench {

/// It can be used as long as the object is there.
class Library {
 public:
#ifdef BENCH_OPENMPI_MPI
  Library() {
    MPI_Init(nullptr, nullptr);
  }
  ~Library() {
    MPI_Finalize();
  }
  static int me() {
    int me = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return me;
  }
  static int size() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
  }
  static void barrier() {
    MPI_Barrier(MPI_COMM_WORLD);
  }
#else
  Library() {
    shmem_init();
  }
  ~Library() {
    shmem_finalize();
  }
  static int me() {
    return shmem_my_pe();
  }
  static int size() {
    return shmem_n_pes();
  }
  static void barrier() {
    shmem_barrier_all();
  }
#endif
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

}  // namespace bench
