// SPDX-License-Identifier: Apache-2.0
// The processes of a job do together what its first one says: memory of their own for that, so that the barrier that is
// measured has nothing to do with it, and the same program measures other libraries.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "bench/round_trip.hpp"

namespace bench {

enum class Step : std::uint32_t { kRaw, kBarriers, kYields, kAlgorithm, kFigure, kBase, kEnd };

/// Words that all see, a cache line each.
struct alignas(64) Word {
  std::atomic<std::uint64_t> value;
};
using Words = std::array<Word, 1024>;

/// In a file that all map, zeroed at first.
struct Score {
  PingPong lines;
  alignas(128) std::atomic<std::uint64_t> number;  // of the step that is to be done
  Step step;                                       // what it is, and how often; written before the number
  std::uint32_t count;
  std::uint32_t item;                            // of a program that measures several things
  alignas(128) std::atomic<std::uint64_t> done;  // steps that the others have done, all together
  PingPong meeting;
  PingPong slow_meeting;
  Words words;
};

/// One process of the job: number `me` of `size`, pinned to one of the processors it may use. Throws std::system_error
/// and std::runtime_error.
class Player {
 public:
  Player(const char* file, int me, int size);
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  ~Player();

  /// Of process 0: has the others do a step, and returns for its own part in it. finish() then waits for theirs.
  void begin(Step step, std::uint32_t count, std::uint32_t item = 0);
  void finish();

  /// Of the others: sleeps until the next step.
  Step next(std::uint32_t& count, std::uint32_t* item = nullptr);
  void step_done();

  /// Of processes 0 and 1 in kRaw: the raw round trip between them, to process 0.
  double raw();

  /// Of processes 0 and 1, both at the same point: returns once the other has come here.
  void meet();
  /// The same, leaving the processor to others meanwhile, such as threads of the other process.
  void meet_giving_way();
  /// For what is measured without a library.
  [[nodiscard]] Words& words() const { return score_->words; }

  [[nodiscard]] int processors() const { return CPU_COUNT(&allowed_); }
  /// Lets the calling thread run on all of them.
  void unpin() const;

 private:
  Score* score_;
  int me_;
  int size_;
  cpu_set_t allowed_{};
  std::uint64_t number_ = 0;
};

}  // namespace bench
