// SPDX-License-Identifier: Apache-2.0
// The measured library: libshmem or, built by Open MPI's compilers with BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, that
// of Open MPI.
#pragma once

#ifdef BENCH_OPENMPI_MPI
#include <mpi.h>
#else
#include <shmem.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace bench {

#ifdef BENCH_OPENMPI_MPI

/// The library can be used while the object exists.
class Library {
 public:
  Library() { MPI_Init(nullptr, nullptr); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { MPI_Finalize(); }
  static int me() { return number_by(MPI_Comm_rank); }
  static int size() { return number_by(MPI_Comm_size); }
  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  static void barrier_in_two_calls() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

 private:
  static int number_by(int (*call)(MPI_Comm comm, int* number)) {
    int number = 0;
    call(MPI_COMM_WORLD, &number);
    return number;
  }
};

/// Memory of this process that the others can access, and operations on the memory of process 1. All processes
/// construct it together.
class Remote {
 public:
  explicit Remote(std::size_t bytes) : from_(bytes, 1), to_(bytes) {
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    std::memset(memory_, 0, bytes);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    Library::barrier();
  }
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;
  ~Remote() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  void put(std::size_t bytes) {
    const int size = static_cast<int>(bytes);
    MPI_Put(from_.data(), size, MPI_BYTE, kPeer, 0, size, MPI_BYTE, window_);
  }
  void get(std::size_t bytes) {
    const int size = static_cast<int>(bytes);
    MPI_Get(to_.data(), size, MPI_BYTE, kPeer, 0, size, MPI_BYTE, window_);
  }
  void quiet() { MPI_Win_flush(kPeer, window_); }
  /// Sends a word to the other process, which waits for it; with MPI as a message.
  static void pass(long value, int to) { MPI_Send(&value, 1, MPI_LONG, to, 0, MPI_COMM_WORLD); }
  static void await(long value, int from) { MPI_Recv(&value, 1, MPI_LONG, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  // `words` are those of one block.
  void sum(std::size_t words) {
    MPI_Allreduce(from_.data(), to_.data(), static_cast<int>(words), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  }
  void broadcast(std::size_t words, int root) {
    MPI_Bcast(to_.data(), static_cast<int>(words), MPI_LONG, root, MPI_COMM_WORLD);
  }
  void fcollect(std::size_t words) {
    const int count = static_cast<int>(words);
    MPI_Allgather(from_.data(), count, MPI_LONG, to_.data(), count, MPI_LONG, MPI_COMM_WORLD);
  }
  void alltoall(std::size_t words) {
    const int count = static_cast<int>(words);
    MPI_Alltoall(from_.data(), count, MPI_LONG, to_.data(), count, MPI_LONG, MPI_COMM_WORLD);
  }

 private:
  static constexpr int kPeer = 1;

  std::vector<char> from_;
  std::vector<char> to_;
  char* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

#else

class Library {
 public:
  Library() { shmem_init(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { shmem_finalize(); }
  static int me() { return shmem_my_pe(); }
  static int size() { return shmem_n_pes(); }
  static void barrier() { shmem_barrier_all(); }
};

/// Collective calls of active sets on words, which are all that Open MPI has. Each call needs its own pSync until all
/// PEs have returned, which they have kTurns calls later.
class SetCollectives {
 public:
  static constexpr std::size_t kTurns = 32;
  explicit SetCollectives(std::size_t words)
      : sync_(static_cast<Sync*>(shmem_malloc(sizeof(Sync)))),
        work_(static_cast<long*>(shmem_malloc((words / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(long)))) {
    for (auto& turn : *sync_) {
      turn.fill(_SHMEM_SYNC_VALUE);
    }
    shmem_barrier_all();
  }
  void broadcast(long* to, const long* from, std::size_t words, int root) {
    shmem_broadcast64(to, from, words, root, 0, 0, shmem_n_pes(), sync());
  }
  void collect(long* to, const long* from, std::size_t words) {
    shmem_collect64(to, from, words, 0, 0, shmem_n_pes(), sync());
  }
  void fcollect(long* to, const long* from, std::size_t words) {
    shmem_fcollect64(to, from, words, 0, 0, shmem_n_pes(), sync());
  }
  void alltoall(long* to, const long* from, std::size_t words) {
    shmem_alltoall64(to, from, words, 0, 0, shmem_n_pes(), sync());
  }
  void sum(long* to, long* from, std::size_t words) {
    shmem_long_sum_to_all(to, from, static_cast<int>(words), 0, 0, shmem_n_pes(), work_, sync());
  }

  void barrier() { shmem_barrier(0, 0, shmem_n_pes(), sync()); }

 private:
  using Sync = std::array<std::array<long, 2 * _SHMEM_COLLECT_SYNC_SIZE>, kTurns>;
  long* sync() { return (*sync_)[turn_++ % kTurns].data(); }

  Sync* sync_;
  long* work_;
  std::size_t turn_ = 0;
};

#ifdef BENCH_OPENMPI_SHMEM
using Collectives = SetCollectives;
#else
class Collectives {
 public:
  explicit Collectives(std::size_t /*words*/) {}
  static void broadcast(long* to, const long* from, std::size_t words, int root) {
    shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, words, root);
  }
  static void collect(long* to, const long* from, std::size_t words) {
    shmem_long_collect(SHMEM_TEAM_WORLD, to, from, words);
  }
  static void fcollect(long* to, const long* from, std::size_t words) {
    shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, words);
  }
  static void alltoall(long* to, const long* from, std::size_t words) {
    shmem_long_alltoall(SHMEM_TEAM_WORLD, to, from, words);
  }
  static void sum(long* to, long* from, std::size_t words) { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, words); }
};
#endif

class Remote {
 public:
  explicit Remote(std::size_t bytes)
      : memory_(static_cast<char*>(shmem_malloc(bytes))),
        from_(static_cast<char*>(shmem_malloc(bytes))),
        word_(static_cast<long*>(shmem_malloc(sizeof(long)))),
        collectives_(bytes / sizeof(long)) {
    if (memory_ == nullptr || from_ == nullptr || word_ == nullptr) {
      throw std::runtime_error("no symmetric memory for puts and gets");
    }
    std::memset(memory_, 0, bytes);
    std::memset(from_, 1, bytes);
    *word_ = 0;
    Library::barrier();
  }
  void put(std::size_t bytes) { shmem_putmem_nbi(memory_, from_, bytes, kPeer); }
  void get(std::size_t bytes) { shmem_getmem_nbi(from_, memory_, bytes, kPeer); }
  static void quiet() { shmem_quiet(); }
  void pass(long value, int to) { shmem_long_p(word_, value, to); }
  void await(long value, int /*from*/) { shmem_long_wait_until(word_, SHMEM_CMP_GE, value); }
  void sum(std::size_t words) { collectives_.sum(to(), from(), words); }
  void broadcast(std::size_t words, int root) { collectives_.broadcast(to(), from(), words, root); }
  void fcollect(std::size_t words) { collectives_.fcollect(to(), from(), words); }
  void alltoall(std::size_t words) { collectives_.alltoall(to(), from(), words); }

 private:
  static constexpr int kPeer = 1;

  long* to() { return reinterpret_cast<long*>(memory_); }
  long* from() { return reinterpret_cast<long*>(from_); }

  char* memory_;
  char* from_;
  long* word_;
  Collectives collectives_;
};

#endif

}  // namespace bench
