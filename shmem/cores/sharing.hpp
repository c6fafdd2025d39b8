// SPDX-License-Identifier: Apache-2.0
// PEs that wait for each other should not share a processor while another one is available: the one that waits takes
// the time that the other one needs. The kernel does not part them while other processes compute, because then all
// processors look equally busy. So the PEs do it.
//
// PEs that outnumber processors share them anyway. But none should stay on a processor where another program computes,
// because all others then wait for the time slices of that program. So they go where the others are.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shmem/cores/processors.hpp"

namespace shmem {

/// Where a PE ran at its last long wait, or last yielded without a loss of time, and when: Sighting; and its process.
/// Alone on its cache line, and only that PE writes it. In shared memory; zero: it has not said so yet.
struct alignas(64) RunsOn {
  std::atomic<std::uint64_t> sighting;
  std::atomic<std::int32_t> pid;
};
static_assert(sizeof(RunsOn) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Ticks of about a millisecond of the node's steady clock.
using SightingTick = std::uint64_t;
constexpr SightingTick tick_of(std::chrono::steady_clock::time_point time) {
  return static_cast<SightingTick>(time.time_since_epoch().count()) >> 20;
}

struct Sighting {
  int cpu = -1;  // -1: unknown
  SightingTick tick = 0;

  [[nodiscard]] constexpr std::uint64_t word() const {
    return cpu < 0 ? 0 : tick << 20 | (static_cast<std::uint64_t>(cpu) + 1);
  }
  static constexpr Sighting of(std::uint64_t word) { return {static_cast<int>(word & 0xfffff) - 1, word >> 20}; }
  /// A PE that has not waited for longer may be anywhere.
  [[nodiscard]] constexpr bool is_recent(SightingTick now) const { return cpu >= 0 && now - tick <= kRecent; }

  static constexpr SightingTick kRecent = 16;
};

/// What a waiter knows of the other PEs.
struct Company {
  bool known = false;     // one of them has been seen recently
  bool together = false;  // on the processor of the waiter

  /// Counts a PE in. The waiter is on `cpu`.
  constexpr void add(const Sighting& other, int cpu, SightingTick now) {
    known = known || other.is_recent(now);
    together = together || (other.is_recent(now) && other.cpu == cpu);
  }
};

/// Keeps in `cpus` the processors without another PE, to which a waiter on `cpu` may move. If none is left, it stays.
void keep_free_of_pes(Cpus& cpus, int cpu, std::span<const Sighting> others, SightingTick now);
/// Keeps in `cpus` the processors with another PE.
void keep_used_by_pes(Cpus& cpus, int cpu, std::span<const Sighting> others, SightingTick now);

/// How often a PE moves: not again for a while, and for longer each time that the last move has not helped for long.
class MoveLimit {
 public:
  static constexpr std::chrono::milliseconds kShortest{4};
  static constexpr std::chrono::milliseconds kLongest{256};

  /// True if the PE may move now, which then counts as a move.
  bool take(std::chrono::steady_clock::time_point now);

 private:
  // Hints: if two threads take a move at once, both may get it.
  std::atomic<std::chrono::steady_clock::rep> next_{0};
  std::atomic<std::chrono::steady_clock::rep> pause_{0};
};

/// Tells the other PEs of a node where this one runs. Moves it away from a processor that another one uses, or, if PEs
/// outnumber processors, to one that another one recommends. Any number of threads.
class SharingWatch {
 public:
  enum class Verdict { kUnknown, kApart, kTogether, kMoved };

  /// `pes` are those of the PEs of the node, which outlive this. They use `processors` together; 0: unknown.
  SharingWatch(std::vector<RunsOn*> pes, int me, int processors);

  /// Whether a waiter looks before it has spun for a while: a look reads a cache line of each PE.
  [[nodiscard]] bool looks_early() const { return pes_.size() <= kFew; }
  /// Says where this PE runs, and finds out whether another PE runs there, too. If so, moves this thread if it may.
  Verdict look(std::chrono::steady_clock::time_point now);
  /// For PEs that outnumber processors: yields are brief here, so others may come.
  void invite(std::chrono::steady_clock::time_point now);
  /// Yields have been long here. If `may_move`, goes to a processor where they are brief for other PEs, if there is one
  /// and the last move was not just now. True: this thread has moved.
  bool follow(std::chrono::steady_clock::time_point now, bool may_move);
  /// The time of the processors, since some moment, that the PEs have not used. Nothing if it is unknown.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> unused(std::chrono::steady_clock::time_point now) const;
  /// Moves that the kernel has refused: by seccomp, or the processors of the thread have changed meanwhile.
  [[nodiscard]] bool refused() const { return refused_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kFew = 8;

  void say(const Sighting& sighting);
  // Relaxed: a hint, as all that is said here.
  [[nodiscard]] Sighting sighting_of(std::size_t pe) const {
    return Sighting::of(pes_[pe]->sighting.load(std::memory_order_relaxed));
  }
  /// Keeps the processors that a PE on `cpu` may move to.
  using Keep = void(Cpus& cpus, int cpu, std::span<const Sighting> others, SightingTick now);
  bool move_from(int cpu, SightingTick now, Keep& keep);
  bool move_in_room(int cpu, SightingTick now, Keep& keep);
  void give_back();

  std::vector<RunsOn*> pes_;
  std::size_t me_;
  int processors_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  MoveLimit limit_;
  std::atomic<bool> refused_{false};
  std::atomic<std::uint64_t> moves_{0};

  /// Used by the one thread that moves. They keep their memory: a wait allocates only if processors were added.
  std::atomic<bool> is_moving_{false};
  Cpus allowed_;
  Cpus targets_;
  Cpus current_;
  std::vector<Sighting> others_;
};

}  // namespace shmem
