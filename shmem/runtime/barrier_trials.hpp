// SPDX-License-Identifier: Apache-2.0
// Finds the fastest barrier of a team by trying a few. The same pair of algorithms differs by a factor of two in either
// direction between machines, and on a virtual machine between one hour and the next, which no table knows.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "shmem/config/barrier_choice.hpp"

namespace shmem {

/// On the first member of a team, which decides for all: the trials to make, one after another, and their result.
class BarrierTrials {
 public:
  using Duration = std::chrono::nanoseconds;

  /// In a first round, which takes some 30 us, the members touch the memory that a candidate needs. If it takes longer
  /// than this, another program has the processors, and there are no more trials.
  static constexpr Duration kHopeless = std::chrono::milliseconds{1};
  /// All further trials together take up to this long.
  static constexpr Duration kBudget = std::chrono::microseconds{150};
  /// Each candidate is tried this often at least after the first round, else the result is not used, and at most.
  static constexpr int kLeast = 2;
  static constexpr int kMost = 6;
  /// What is faster than the table's choice by less than this, in percent, is taken for noise.
  static constexpr int kMargin = 5;

  /// No trials: the result is `choice`.
  explicit BarrierTrials(const BarrierChoice& choice) : candidates_{{choice}} {}
  /// Trials of `choice`, the table's, and of the others that may be the fastest among so many members.
  static BarrierTrials among(const BarrierChoice& choice, int members);

  /// How many barriers are one trial.
  [[nodiscard]] static int barriers(int members) { return members <= 8 ? 16 : 8; }
  /// The next trial, or the result after the last one (BarrierChoice::trial tells which).
  [[nodiscard]] BarrierChoice next() const;
  /// The trial that next() returned took so long, and so much time has passed since the first one began.
  void note(Duration trial, Duration since_first);

  struct Result {
    BarrierChoice choice;
    Duration trial;
  };
  /// If there were enough trials.
  [[nodiscard]] std::optional<Result> result() const;

 private:
  struct Candidate {
    BarrierChoice choice{};
    Duration least = Duration::max();
  };

  [[nodiscard]] bool over() const { return over_ || candidates_.size() < 2; }
  [[nodiscard]] std::size_t turn() const { return made_ % candidates_.size(); }

  std::vector<Candidate> candidates_;  // the table's choice is the first one
  std::size_t made_ = 0;
  Duration warm_{};     // when the first round was over
  Duration longest_{};  // of the last round
  bool over_ = false;
};

/// What teams of about the same size have found, for all PEs of the node: one word in shared memory, all zero at first.
class MeasuredBarrier {
 public:
  /// The index of the word among kMeasuredBarriers.
  static constexpr std::size_t index(int members) {
    return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(members - 1)));
  }

  explicit MeasuredBarrier(std::atomic<std::uint64_t>& word) : word_(word) {}
  struct Known {
    Algorithm algorithm;
    BarrierTrials::Duration each;  // barrier
  };
  // Relaxed: the word is all there is.
  [[nodiscard]] std::optional<Known> load() const;
  void store(const Known& known);

 private:
  std::atomic<std::uint64_t>& word_;
};

}  // namespace shmem
