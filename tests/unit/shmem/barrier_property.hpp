// SPDX-License-Identifier: Apache-2.0
// The guarantee of every barrier, checked while it runs on any type of Core: no core leaves barrier k before all have
// entered k, and a core that leaves sees what all cores stored before they entered.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/pause.hpp"
#include "shmem/barrier/algorithms.hpp"

namespace shmem_test {

/// Ordinary data, on a cache line of its own. Only the barrier orders accesses to it.
struct alignas(64) Cell {
  std::uint64_t value = 0;
};

/// A core that also reads and writes ordinary memory.
template <typename C>
concept DataCore = shmem::Core<C> && requires(C& core, Cell& cell, std::uint64_t value) {
  core.write(cell, value);
  { core.read(cell) } -> std::same_as<std::uint64_t>;
};

/// Barriers of one team, one after the other.
struct BarrierRun {
  std::optional<shmem::Algorithm> algorithm{};  // none: algorithm and tuning change with each barrier
  shmem::BarrierTuning tuning{};
  int pes = 1;
  int cores = 1;        // of each PE; the maximum if uneven
  bool uneven = false;  // PEs have different numbers of cores
  int barriers = 1;
  /// The number before the first barrier: the low 32 bits, which are all that a futex compares, wrap soon after it.
  std::uint64_t before = (std::uint64_t{1} << 32) - 4;

  [[nodiscard]] int cores_of(int pe) const { return uneven ? 1 + pe % cores : cores; }
};

inline std::string to_string(const BarrierRun& run) {
  return std::string(run.algorithm ? name_of(*run.algorithm) : "mixed") + ", " + std::to_string(run.pes) + " PEs of " +
         (run.uneven ? "1 to " : "") + std::to_string(run.cores) + " cores";
}

/// The data that the cores of all PEs store before each barrier. Two cells per core are used in turn, so that the cell
/// read after one barrier is not written before the next.
class Cells {
 public:
  static std::size_t needed(const BarrierRun& run) {
    return 2 * static_cast<std::size_t>(run.pes) * static_cast<std::size_t>(run.cores);
  }
  /// REQUIRES: memory has room for needed() cells.
  Cells(std::span<Cell> memory, const BarrierRun& run) : memory_(memory), cores_(run.cores) {}
  [[nodiscard]] Cell& of(int pe, int core, std::uint64_t k) const {
    return memory_[2 * (static_cast<std::size_t>(pe) * static_cast<std::size_t>(cores_) +
                        static_cast<std::size_t>(core)) +
                   k % 2];
  }

 private:
  std::span<Cell> memory_;
  int cores_;
};

/// The algorithm and tuning of barrier k of `run`, the same on all cores of all PEs.
inline shmem::BarrierChoice choice_of(const BarrierRun& run, std::uint64_t k) {
  if (run.algorithm) {
    return {*run.algorithm, run.tuning};
  }
  std::minstd_rand random(static_cast<unsigned>(k % 0x7fffffff) + 1);
  random.discard(3);
  shmem::BarrierTuning tuning = run.tuning;
  const auto algorithm = shmem::kAlgorithms[random() % shmem::kAlgorithms.size()].algorithm;
  tuning.radix = 2 + static_cast<int>(random() % 7);
  tuning.group = 1 + static_cast<int>(random() % static_cast<unsigned>(run.pes));
  tuning.oversubscribed = random() % 2 == 0;
  return {algorithm, tuning};
}

/// Does the barriers of `run` on one core; every core of every PE calls it. Returns the first error, or "".
template <DataCore C, typename View>
std::string check_barriers(C& core, const View& view, const BarrierRun& run, const Cells& cells) {
  for (std::uint64_t k = run.before + 1; k <= run.before + static_cast<std::uint64_t>(run.barriers); ++k) {
    const auto wrong = [&](const std::string& what) {
      return "barrier " + std::to_string(k) + " (" + name_of(choice_of(run, k).algorithm) + "), PE " +
             std::to_string(view.me()) + " core " + std::to_string(core.index()) + ": " + what;
    };
    core.write(cells.of(view.me(), core.index(), k), k);
    if (const std::errc error = arrive_and_wait(choice_of(run, k), core, view, k); error != std::errc{}) {
      return wrong(std::make_error_code(error).message());
    }
    for (int pe = 0; pe < run.pes; ++pe) {
      for (int other = 0; other < run.cores_of(pe); ++other) {
        if (const std::uint64_t seen = core.read(cells.of(pe, other, k)); seen != k) {
          return wrong("sees " + std::to_string(seen) + " of PE " + std::to_string(pe) + " core " +
                       std::to_string(other));
        }
      }
    }
  }
  return "";
}

/// Gives a core the ordinary memory of this process, whose accesses the compiler and the processor may reorder and
/// ThreadSanitizer checks.
template <shmem::Core C>
class WithData : public C {
 public:
  explicit WithData(C core) : C(std::move(core)) {}
  static void write(Cell& cell, std::uint64_t value) { cell.value = value; }
  static std::uint64_t read(const Cell& cell) { return cell.value; }
};

/// A core with a random delay before each step: none, a few pauses, a yield to other threads, or a sleep.
template <DataCore C>
class DawdlingCore {
 public:
  DawdlingCore(C& core, unsigned seed) : core_(core), random_(seed) {}

  [[nodiscard]] int index() const { return core_.index(); }
  [[nodiscard]] int count() const { return core_.count(); }
  std::uint64_t load(shmem::SyncWord& word) { return late().load(word); }
  void store(shmem::SyncWord& word, std::uint64_t value) { late().store(word, value); }
  std::uint64_t fetch_add(shmem::SyncWord& word, std::uint64_t value) { return late().fetch_add(word, value); }
  auto begin_wait() { return late().begin_wait(); }
  void fence() { late().fence(); }
  void dcci(const void* address) { late().dcci(address); }
  void dcci_all() { late().dcci_all(); }
  std::errc sync() { return late().sync(); }
  void write(Cell& cell, std::uint64_t value) { late().write(cell, value); }
  std::uint64_t read(Cell& cell) { return core_.read(cell); }  // without a delay: there are many reads

 private:
  C& late() {
    const unsigned dice = static_cast<unsigned>(random_());
    if (dice % 4096 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(dice / 4096 % 64));
    } else if (dice % 64 == 0) {
      give_way();
    } else if (dice % 8 == 0) {
      for (unsigned i = dice / 8 % 128; i > 0; --i) {
        base::pause_processor();
      }
    }
    return core_;
  }

  /// Beside other processes that compute, a yield would take a time slice of theirs.
  static void give_way() {
    constexpr shmem::WaitPolicy once{.yields = 1};
    if (once.may_yield(0)) {
      once.yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds{1});
    }
  }

  C& core_;
  std::minstd_rand random_;
};

}  // namespace shmem_test
