// SPDX-License-Identifier: Apache-2.0
// What PEs count under `oshrun --profile`: memory that oshrun shares with them, so that it can read the counts of PEs
// that were killed, too. A sealed memfd with one PeTable for each PE of the node.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "shmem/result.hpp"

namespace shmem::profile {

/// Set for each PE: the descriptor of the memory.
constexpr const char* kFdVariable = "OSHRUN_PROFILE_FD";
/// The library that counts: its file name.
constexpr const char* kLibrary = "libshmem_profile.so";

constexpr std::uint32_t kMagic = 0x464f5250;  // "PROF"
constexpr std::uint32_t kVersion = 1;

enum class Kind : std::uint32_t { kPut, kGet, kAtomic, kOrder, kBarrier, kCollective, kWait, kMemory, kOther };
constexpr std::size_t kKinds = 9;

/// Written by one thread, or by several with atomic additions; read by oshrun at the end. All relaxed: each number
/// stands for itself.
struct Counts {
  std::atomic<std::uint64_t> calls, bytes, ticks;
};

/// One routine.
struct Line {
  std::array<char, 60> name;
  Kind kind;
  Counts main;    // of the thread that made the PE's first call
  Counts others;  // of all other threads
};

/// Bytes to and from the memory of another PE.
struct Traffic {
  std::atomic<std::uint64_t> put, got;
};
struct Target {
  Traffic main, others;
};

/// More than the API has routines.
constexpr std::size_t kMostLines = 2048;

/// One PE, followed by a Target for each PE of the job.
struct PeTable {
  std::atomic<std::uint64_t> started,
      finished;                        // ticks of the beginning of shmem_init, the end of shmem_finalize; or 0
  std::atomic<std::uint64_t> since;    // ticks of the beginning of the main thread's present call
  std::atomic<std::uint32_t> present;  // 1 + its line; 0: it is in none
  std::atomic<std::uint32_t> lines;    // in use; their names and kinds are constant
  std::atomic<std::int32_t> pid;
  std::int32_t unused;
  std::array<Line, kMostLines> line;
};

struct Header {
  std::uint32_t magic;
  std::uint32_t version;
  std::int32_t first;  // the number of the first PE here
  std::int32_t count;  // of PEs here
  std::int32_t total;  // PEs of the job
  std::uint32_t is_counter;
};

/// Ticks: of the processor's counter if it runs at one rate on all processors, else nanoseconds.
inline std::uint64_t counter() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return 0;
#endif
}
std::uint64_t nanoseconds();

/// Owns a mapping of the memory.
class Memory {
 public:
  static Result<Memory> create(int first, int count, int total);
  static Result<Memory> attach(int fd);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const Header& header() const { return *reinterpret_cast<const Header*>(mapping_.data()); }
  /// REQUIRES: 0 <= index < header().count.
  [[nodiscard]] PeTable& table(int index) const;
  [[nodiscard]] Target* targets(int index) const { return reinterpret_cast<Target*>(&table(index) + 1); }
  [[nodiscard]] std::uint64_t ticks() const { return header().is_counter != 0 ? counter() : nanoseconds(); }

 private:
  Memory(base::UniqueFd fd, base::Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  base::UniqueFd fd_;  // oshrun's; empty in a PE
  base::Mapping mapping_;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Line) == 112 && sizeof(PeTable) % 8 == 0);

}  // namespace shmem::profile
