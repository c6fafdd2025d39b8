// SPDX-License-Identifier: Apache-2.0
// Keeps the barriers that teams have measured for later jobs of the same user on the same machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "shmem/runtime/barrier_trials.hpp"

namespace shmem {

/// A text file: a line for each result. One of another machine, another start of the machine, or another number of PEs
/// or processors does not count, nor one that is older than an hour: a virtual machine's round trips change. Jobs may
/// use the file at once: it is replaced as a whole, and the last one wins. Where it cannot be read or written, or is no
/// such file, nothing is known, and teams measure.
class BarrierCache {
 public:
  static constexpr std::int64_t kSecondsKept = 3600;

  /// For jobs of so many PEs on this node: in the folder XDG_CACHE_HOME or ~/.cache, of the user who runs the program.
  static BarrierCache of_user(int pes, int processors);
  /// `place`: a word that tells machines and jobs apart that measure differently. `file` may be "": nothing is kept.
  BarrierCache(std::string file, std::string place) : file_(std::move(file)), place_(std::move(place)) {}

  /// Fills in the words (by MeasuredBarrier::index) that it knows. `now`: seconds since the machine's start.
  void load(std::span<std::atomic<std::uint64_t>> words, std::int64_t now = seconds_up()) const;
  /// Drops lines that no longer count.
  void keep(std::size_t index, const MeasuredBarrier::Known& known, std::int64_t now = seconds_up()) const;

 private:
  static std::int64_t seconds_up();

  std::string file_;
  std::string place_;
};

}  // namespace shmem
