// SPDX-License-Identifier: Apache-2.0
// One process of a job that measures: the processes do the steps that process 0 begins. They coordinate through
// separate shared memory, so that this does not involve the measured library.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure.hpp"

namespace bench {

/// A word in shared memory, in its own cache line.
struct alignas(64) Word {
  std::atomic<std::uint64_t> value;
};
using Words = std::array<Word, 1024>;

/// All processes of a job call it with the same count; process 0 returns the nanoseconds of one operation.
using Figure = std::function<double(int count)>;

/// A figure that the processes of a job measure together, and a simpler operation to compare it with.
struct Item {
  std::string name;
  Figure figure;
  Figure base{};       // none: the raw round trip
  int most = 100'000;  // calls in one repeat
  int least = 5;
  double nanoseconds = 3e6;         // of one repeat: shorter than the changes of the machine
  std::function<void()> prepare{};  // called by all before the first repeat
};

/// One process of the job: number `me` of `size`, pinned to one of the processors it may use. All processes map the
/// same file, which is empty at first. Throws std::system_error and std::runtime_error.
class Worker {
 public:
  Worker(const char* file, int me, int size);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Called by all with the same items. Process 0 prints the points (measure.hpp).
  void measure(const std::vector<Item>& items, int repeats);

  /// Called by processes 0 and 1: returns when the other one has called it too.
  void synchronise();
  /// The same, but yields the processor meanwhile, for instance to threads of the other process.
  void synchronise_yielding();
  /// Shared words for figures that need no library.
  [[nodiscard]] Words& words() const;

  [[nodiscard]] int processors() const { return static_cast<int>(cpus_.size()); }
  /// Allows the calling thread to run on all of them.
  void unpin() const { run_on(cpus_); }

 private:
  enum class Step : std::uint32_t;
  struct ControlBlock;

  double step(Step step, int count = 0);
  double take_part(Step step, int count);
  double raw();
  int count_for(Step step);
  std::vector<Point> measure_item(int repeats);
  void follow();

  std::vector<int> cpus_ = allowed_cpus();
  ControlBlock* control_;
  int me_;
  int size_;
  const Item* items_ = nullptr;
  std::size_t item_ = 0;      // of the current step
  std::uint64_t number_ = 0;  // of the current step
};

using Items = std::vector<Item>;
using Arguments = std::vector<std::string>;

/// What the processes of a job measure, named on their command line: a constant of a namespace, which registers itself,
/// so that a worker has the parts of the files that it is built of.
class Part {
 public:
  /// `arguments` follow the number of repeats on the command line.
  using ItemsOf = Items (*)(Worker& worker, const Arguments& arguments);
  /// Measures in its own way; `number` stands in the place of the number of repeats. Called with the library in use.
  using Run = void (*)(int number);

  Part(const char* name, ItemsOf items) : name_(name), items_(items) { all().push_back(this); }
  Part(const char* name, Run run) : name_(name), run_(run) { all().push_back(this); }

  /// Throws std::runtime_error if no part has that name.
  static const Part& named(const std::string& name);
  void measure(const char* file, int number, const Arguments& arguments) const;

 private:
  static std::vector<const Part*>& all();

  const char* name_;
  ItemsOf items_ = nullptr;
  Run run_ = nullptr;
};

/// "64 B", "4 KiB", "1 MiB".
inline std::string size_text(std::size_t size) {
  if (size >= std::size_t{1} << 20) {
    return std::to_string(size >> 20) + " MiB";
  }
  return size >= 1024 ? std::to_string(size >> 10) + " KiB" : std::to_string(size) + " B";
}

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
