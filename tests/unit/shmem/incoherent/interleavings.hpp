// SPDX-License-Identifier: Apache-2.0
// All schedules of a few threads, one after the other. Only sequentially consistent operations keep their order.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/unit/shmem/incoherent/fibers.hpp"
#include "tests/unit/shmem/incoherent/sites.hpp"

namespace incoherent {

/// A memory model that is weaker than that of processors in the aspects that matter to waiting and waking:
/// - a read-modify-write that is not sequentially consistent may reach memory at any later time;
/// - a load that is not sequentially consistent may be early: before a read-modify-write of another word, but not
///   before an acquire load;
/// - the kernel's load before a sleep is relaxed, except that it sees all changes before the last wake-up.
class Interleavings {
 public:
  using Body = std::function<void(int thread)>;

  explicit Interleavings(int threads);

  /// Runs `body` on all threads in every schedule, with all words 0 at first. The operation at `weakened` is done as if
  /// it were relaxed. False as soon as, in some schedule, a thread sleeps and no thread will wake it.
  bool all_end(const Body& body, const Site& weakened = {});
  /// From now on store_barrier() works as the kernel's; before, it is refused.
  void allow_store_barriers() { has_store_barrier_ = true; }
  [[nodiscard]] int schedules() const { return schedules_; }
  /// The sequentially consistent operations that all_end() has executed.
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_.seen(); }

  /// Stores `operand` in the word, or adds it.
  struct Change {
    std::size_t word;
    bool add;
    std::uint64_t operand;
  };

  // Called by the running thread. Words are 0, 1, ...
  static constexpr std::size_t kWords = 4;
  std::uint64_t load(std::size_t word, std::memory_order order, const Site& site);
  std::uint64_t modify(const Change& change, std::memory_order order, const Site& site);
  /// Ends only by a wake-up.
  void sleep(std::size_t word, std::uint64_t seen);
  void wake(std::size_t word);
  /// All changes of all threads reach memory, and no later load is done before it. False if it is refused.
  bool store_barrier();

 private:
  static constexpr std::size_t kAwake = kWords;
  /// For each word, an index into its history.
  using Versions = std::array<std::size_t, kWords>;

  struct Thread {
    bool ended = false;
    std::size_t asleep_on = kAwake;
    std::vector<Change> delayed{};
    Versions earliest{};  // the oldest values that the next load may return
    Versions seen{};      // a load returns no older value than the previous load of the word
  };
  struct Choice {
    std::size_t taken;
    std::size_t of;
  };

  void serve(int thread);
  bool run_once(const Body& body);
  [[nodiscard]] std::size_t choose(std::size_t of);
  bool next_schedule();
  void go_on();
  [[nodiscard]] int next();
  bool is_ordered(std::memory_order order, const Site& site);
  [[nodiscard]] Versions now() const;
  std::uint64_t look(std::size_t word, std::size_t oldest);
  std::uint64_t apply(const Change& change);
  Thread& running() { return threads_[static_cast<std::size_t>(fibers_.current())]; }

  std::vector<Thread> threads_;
  std::array<std::vector<std::uint64_t>, kWords> history_;  // the last value is the one in memory
  Versions woken_{};                                        // the values in memory at the last wake-up
  std::vector<Choice> choices_;                             // of this schedule
  std::size_t depth_ = 0;
  int schedules_ = 0;
  bool lost_ = false;
  bool has_store_barrier_ = false;
  Site weakened_;
  Sites sites_;
  const Body* body_ = nullptr;
  Fibers fibers_;
};

/// Has the interface of std::atomic, on a word of the model.
class ModelAtomic {
 public:
  ModelAtomic(Interleavings& all, std::size_t word) : all_(all), word_(word) {}

  std::uint64_t load(std::memory_order order, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return all_.load(word_, order, {"load", file, line});
  }
  std::uint64_t exchange(std::uint64_t value, std::memory_order order, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
    return all_.modify({word_, false, value}, order, {"exchange", file, line});
  }
  std::uint64_t fetch_add(std::uint64_t value, std::memory_order order, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
    return all_.modify({word_, true, value}, order, {"fetch_add", file, line});
  }
  std::uint64_t fetch_sub(std::uint64_t value, std::memory_order order, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
    return all_.modify({word_, true, ~value + 1}, order, {"fetch_sub", file, line});
  }

  // Overloads of shmem's functions, found by argument-dependent lookup.
  friend void futex_sleep(const ModelAtomic& word, std::uint64_t seen, std::chrono::nanoseconds /*limit*/,
                          const std::atomic<std::uint32_t>* /*alarm*/) {
    word.all_.sleep(word.word_, seen);
  }
  friend void futex_wake_all(const ModelAtomic& word) { word.all_.wake(word.word_); }
  friend bool store_barrier_for(const ModelAtomic& word) { return word.all_.store_barrier(); }

 private:
  Interleavings& all_;
  std::size_t word_;
};

}  // namespace incoherent
