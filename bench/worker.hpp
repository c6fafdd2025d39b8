// SPDX-License-Identifier: Apache-2.0
// One process of a measuring job: the processes do the steps that process 0 begins. They coordinate through separate
// shared memory, so that this does not involve the measured library.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure.hpp"

namespace bench {

enum class Step : std::uint32_t { kRaw, kPrepare, kFigure, kBase, kEnd };

/// A word in shared memory, in its own cache line.
struct alignas(64) Word {
  std::atomic<std::uint64_t> value;
};
using Words = std::array<Word, 1024>;

/// In a file that all processes map; initially zero.
struct ControlBlock {
  PingPong lines;
  alignas(128) std::atomic<std::uint64_t> number;  // of the current step
  Step step;  // what to do, how often, and for which item; written before the number
  std::uint32_t count;
  std::uint32_t item;
  alignas(128) std::atomic<std::uint64_t> done;  // steps that the other processes have done, summed up
  PingPong barrier;
  PingPong yielding_barrier;
  Words words;
};

/// One process of the job: number `me` of `size`, pinned to one of the processors it may use. Throws std::system_error
/// and std::runtime_error.
class Worker {
 public:
  Worker(const char* file, int me, int size);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// On process 0: makes the others do a step, and returns so that the caller can do its part. finish() waits for the
  /// others' parts.
  void begin(Step step, std::uint32_t count, std::uint32_t item);
  void finish();

  /// On the others: sleeps until the next step.
  Step next(std::uint32_t& count, std::uint32_t& item);
  void step_done();

  /// Called by all in kRaw; process 0 gets the raw round trip to process 1.
  double raw();

  /// Called by processes 0 and 1: returns when the other one has called it too.
  void synchronise();
  /// The same, but yields the processor meanwhile, for instance to threads of the other process.
  void synchronise_yielding();
  /// Shared words for figures that need no library.
  [[nodiscard]] Words& words() const { return control_->words; }

  [[nodiscard]] int processors() const { return CPU_COUNT(&allowed_); }
  /// Allows the calling thread to run on all of them.
  void unpin() const;

 private:
  ControlBlock* control_;
  int me_;
  int size_;
  cpu_set_t allowed_{};
  std::uint64_t number_ = 0;
};

/// One figure that the processes of a job measure together, and a simpler operation to compare it with. All processes
/// call each function with the same count; process 0 returns the nanoseconds of one operation.
struct Item {
  std::string name;
  std::function<double(std::uint32_t count)> figure;
  std::function<double(std::uint32_t count)> base{};  // none: the raw round trip
  std::uint32_t most = 100'000;                       // calls in one repeat
  std::uint32_t least = 5;
  double nanoseconds = 3e6;         // of one repeat: shorter than the changes of the machine
  std::function<void()> prepare{};  // called by all before the first repeat
};

/// "64 B", "4 KiB", "1 MiB".
inline std::string size_text(std::size_t size) {
  if (size >= std::size_t{1} << 20) {
    return std::to_string(size >> 20) + " MiB";
  }
  return size >= 1024 ? std::to_string(size >> 10) + " KiB" : std::to_string(size) + " B";
}

/// main() of a program that runs as one process of a job, with the arguments FILE REPEATS PART...; `items_of` returns
/// the items for the parts. Prints points (measure.hpp).
using ItemsOf = std::function<std::vector<Item>(Worker& worker, const std::vector<std::string>& parts)>;
int measure_items(int argc, char** argv, const ItemsOf& items_of);

// The items between two nodes, which bench_net compares with tests of UCX.

inline constexpr const char* kPutLatency = "put 8 B, one way";
inline constexpr const char* kGetLatency = "get 8 B";
inline constexpr std::size_t kStreamed[] = {65536, std::size_t{1} << 20};
inline std::string put_stream(std::size_t bytes) {
  return "puts of " + size_text(bytes);
}
inline std::string get_stream(std::size_t bytes) {
  return "gets of " + size_text(bytes);
}

}  // namespace bench
