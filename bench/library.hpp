// SPDX-License-Identifier: Apache-2.0
// The measured library: libshmem or, built by Open MPI's compilers with BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, that
// of Open MPI. Library: it can be used while the object exists. Calls: memory of each process that the others can
// access, operations on that of process 1, and collective calls. All processes make both together.
#pragma once

#if !defined(BENCH_OPENMPI_MPI) && !defined(BENCH_OPENMPI_SHMEM)
#define BENCH_OURS
#endif

#ifdef BENCH_OPENMPI_MPI
#include <mpi.h>
#else
#include <shmem.h>
#endif
#ifdef BENCH_OURS
#include <shmem_device.h>
#include <shmemx.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/worker.hpp"

namespace bench {

#ifdef BENCH_OPENMPI_MPI

class Library {
 public:
  Library() { MPI_Init(nullptr, nullptr); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { MPI_Finalize(); }
  static int me() { return number_by(MPI_Comm_rank); }
  static int size() { return number_by(MPI_Comm_size); }
  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  static int number_by(int (*call)(MPI_Comm comm, int* number)) {
    int number = 0;
    call(MPI_COMM_WORLD, &number);
    return number;
  }
};

class Calls {
 public:
  explicit Calls(std::size_t bytes) : from_(bytes, 1), to_(bytes) {
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    std::memset(memory_, 0, bytes);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    Library::barrier();
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
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
  /// From every process in turn, so that each call waits for the previous one.
  void broadcast(std::size_t words) {
    MPI_Bcast(to_.data(), static_cast<int>(words), MPI_LONG, root_, MPI_COMM_WORLD);
    root_ = (root_ + 1) % Library::size();
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
  int root_ = 0;
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

/// Symmetric memory, each byte of which is `fill`, kept until shmem_finalize. Throws std::runtime_error.
inline char* symmetric_memory(std::size_t bytes, int fill = 0) {
  constexpr std::size_t kPage = 4096;
  void* memory = shmem_align(kPage, bytes);
  if (memory == nullptr) {
    throw std::runtime_error("no symmetric memory for " + size_text(bytes));
  }
  std::memset(memory, fill, bytes);
  return static_cast<char*>(memory);
}
inline long* symmetric_words(std::size_t words) {
  return reinterpret_cast<long*>(symmetric_memory(words * sizeof(long)));
}

/// Collective calls of active sets on words, which are all that Open MPI has. Each call needs its own pSync until all
/// PEs have returned, which they have kTurns calls later.
class SetCollectives {
 public:
  explicit SetCollectives(std::size_t words)
      : sync_(static_cast<Sync*>(shmem_malloc(sizeof(Sync)))),
        work_(symmetric_words(words / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE)) {
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
  static constexpr std::size_t kTurns = 32;
  using Sync = std::array<std::array<long, std::size_t{2} * _SHMEM_COLLECT_SYNC_SIZE>, kTurns>;
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
  static void barrier() { shmem_barrier_all(); }
};
#endif

template <typename Kind>
class CallsBy {
 public:
  explicit CallsBy(std::size_t bytes)
      : to_(symmetric_words(bytes / sizeof(long))),
        from_(symmetric_words(bytes / sizeof(long))),
        word_(symmetric_words(1)),
        collectives_(bytes / sizeof(long)) {
    Library::barrier();
  }
  void put(std::size_t bytes) { shmem_putmem_nbi(to_, from_, bytes, kPeer); }
  void get(std::size_t bytes) { shmem_getmem_nbi(from_, to_, bytes, kPeer); }
  static void quiet() { shmem_quiet(); }
  void pass(long value, int to) { shmem_long_p(word_, value, to); }
  void await(long value, int /*from*/) { shmem_long_wait_until(word_, SHMEM_CMP_GE, value); }
  void sum(std::size_t words) { collectives_.sum(to_, from_, words); }
  void broadcast(std::size_t words) {
    broadcast(words, root_);
    root_ = (root_ + 1) % Library::size();
  }
  void broadcast(std::size_t words, int root) { collectives_.broadcast(to_, from_, words, root); }
  void collect(std::size_t words) { collectives_.collect(to_, from_, words); }
  void fcollect(std::size_t words) { collectives_.fcollect(to_, from_, words); }
  void alltoall(std::size_t words) { collectives_.alltoall(to_, from_, words); }
  void barrier() { collectives_.barrier(); }
  /// The mean of the values of all PEs.
  double mean(double value) {
    from_[0] = static_cast<long>(value);
    sum(1);
    return static_cast<double>(to_[0]) / Library::size();
  }

 private:
  static constexpr int kPeer = 1;

  long* to_;
  long* from_;
  long* word_;
  Kind collectives_;
  int root_ = 0;
};
using Calls = CallsBy<Collectives>;

#endif

/// From a barrier on, all processes act.
template <typename Action>
Figure together(Action action) {
  return [action](int count) mutable {
    Library::barrier();
    return time_each(count, action);
  };
}

/// Only process 0 acts.
template <typename Action>
Figure alone(Action action) {
  return [action](int count) mutable { return Library::me() == 0 ? time_each(count, action) : 0.0; };
}

/// Measures each `copy` by itself on process 0, while process 1 takes part; then process 1 reads the `size` bytes that
/// arrived.
template <typename Copy, typename TakePart>
Figure read_in_between(Worker& worker, Copy copy, TakePart take_part, const char* destination, std::size_t size) {
  const auto read_all = [destination, size] {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size; at += sizeof sum) {
      sum += *reinterpret_cast<const std::uint64_t*>(destination + at);
    }
    asm volatile("" : : "r"(sum));
  };
  return [&worker, copy, take_part, read_all](int count) mutable {
    double time = 0;
    for (int round = 0; round < count; ++round) {
      worker.synchronise();
      if (Library::me() == 0) {
        time += time_each(1, copy);
      } else {
        take_part();
      }
      worker.synchronise();
      if (Library::me() != 0) {
        read_all();
      }
      worker.synchronise();
    }
    return time / count;
  };
}

}  // namespace bench
