// SPDX-License-Identifier: Apache-2.0
// What two libraries have differently for the same work between hosts: OpenSHMEM, and MPI (BENCH_OPENMPI_MPI).
#pragma once

#include "bench/library.hpp"
#ifndef BENCH_OPENMPI_MPI
#include "bench/rma_library.hpp"
#endif

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace bench {

/// Memory of this process that the others can reach, and what is done with that of process 1. All make one together.
class Remote {
 public:
#ifdef BENCH_OPENMPI_MPI
  explicit Remote(std::size_t bytes) : from_(bytes, 1), to_(bytes) {
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    std::memset(memory_, 0, bytes);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    Library::barrier();
  }
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
  void quiet() {
    MPI_Win_flush(kPeer, window_);
  }
  /// A word to the other one, who waits for it: of MPI a message.
  static void pass(long value, int to) {
    MPI_Send(&value, 1, MPI_LONG, to, 0, MPI_COMM_WORLD);
  }
  static void await(long /*value*/, int from) {
    long value = 0;
    MPI_Recv(&value, 1, MPI_LONG, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
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
#else
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
  ~Remote() = default;
  void put(std::size_t bytes) {
    shmem_putmem_nbi(memory_, from_, bytes, kPeer);
  }
  void get(std::size_t bytes) {
    shmem_getmem_nbi(from_, memory_, bytes, kPeer);
  }
  static void quiet() {
    shmem_quiet();
  }
  void pass(long value, int to) {
    shmem_long_p(word_, value, to);
  }
  void await(long value, int /*from*/) {
    shmem_long_wait_until(word_, SHMEM_CMP_GE, value);
  }
  void sum(std::size_t words) {
    collectives_.sum(to(), from(), words);
  }
  void broadcast(std::size_t words, int root) {
    collectives_.broadcast(to(), from(), words, root);
  }
  void fcollect(std::size_t words) {
    collectives_.fcollect(to(), from(), words);
  }
  void alltoall(std::size_t words) {
    collectives_.alltoall(to(), from(), words);
  }
#endif
  /// All processes by turns.
  int next_root() {
    return turn_++ % Library::size();
  }
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

 private:
  static constexpr int kPeer = 1;

  int turn_ = 0;
#ifdef BENCH_OPENMPI_MPI
  std::vector<char> from_;
  std::vector<char> to_;
  char* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
#else
  long* to() {
    return reinterpret_cast<long*>(memory_);
  }
  long* from() {
    return reinterpret_cast<long*>(from_);
  }

  char* memory_;
  char* from_;
  long* word_;
  Collectives collectives_;
#endif
};

}  // namespace bench
