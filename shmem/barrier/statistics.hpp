// SPDX-License-Identifier: Apache-2.0
// A member's statistics of its barriers on one team: how many by which path, how long it waited, how far apart the
// members arrived, and which arrived last.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "shmem/config/barrier_choice.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// How a barrier was done: by an Algorithm, or released by the device. Of a team on several nodes: how its nodes were
/// synchronised.
class BarrierPath {
 public:
  static constexpr std::size_t kPaths = kAlgorithms.size() + 1;

  static constexpr BarrierPath device() { return BarrierPath(kAlgorithms.size()); }
  static constexpr BarrierPath software(Algorithm algorithm) {
    return BarrierPath(static_cast<std::size_t>(algorithm));
  }

  [[nodiscard]] constexpr std::size_t index() const { return index_; }
  [[nodiscard]] constexpr const char* name() const {
    return index_ < kAlgorithms.size() ? kAlgorithms[index_].name : "gba";
  }

 private:
  friend class BarrierStatistics;
  constexpr explicit BarrierPath(std::size_t index) : index_(index) {}
  std::size_t index_;
};

/// Sums and maxima over the timed barriers, in nanoseconds.
struct BarrierTimes {
  std::uint64_t timed = 0;
  std::uint64_t wait = 0;  // from this member's arrival until its release
  std::uint64_t longest_wait = 0;
  std::uint64_t skew = 0;  // from the first member's arrival to the last one's
  std::uint64_t longest_skew = 0;
};

/// Used by one thread at a time, as its team is. Counts all barriers; times one in kEach, or with SHMEM_INFO and
/// SHMEM_TRACE all, so that a barrier of 50 ns stays one. (Not those with numbers that are multiples of kEach: they may
/// be check rounds.)
///
/// If all are timed, a member reads the arrivals of all members; else those of up to kMostRead neighbours, so that no
/// barrier pays for the size of its team. All members read the same neighbours, and others each time.
///
/// A member stores the time of its arrival in its TeamSync before it arrives; the others read it after the barrier. Two
/// slots alternate: no member writes the same one again before all have entered the next barrier.
///
/// For a team on several nodes, only the arrivals of the members on this node are compared: nodes have no common clock.
class BarrierStatistics {
 public:
  static constexpr std::uint64_t kEach = 64;
  static constexpr int kMostRead = 16;

  /// `map` and `view` are of the members on this node; `size` of all members.
  BarrierStatistics(const Job& job, const TeamMap& map, const SyncView& view, int team, int size);

  /// Around barrier `count`.
  void arrive(std::uint64_t count) {
    if ((count & mask_) == (kEach / 2 & mask_)) {
      note_arrival(count);
    }
  }
  void complete(std::uint64_t count, BarrierPath path) {
    ++by_path_[path.index()];
    if ((count & mask_) == (kEach / 2 & mask_)) {
      take_times(count, path);
    }
  }

  /// This many barriers, up to the last one, are not numbered in messages and traces: the program did not make them.
  void exclude(std::uint64_t barriers) { excluded_ += barriers; }
  [[nodiscard]] std::uint64_t excluded() const { return excluded_; }

  [[nodiscard]] std::uint64_t by(BarrierPath path) const { return by_path_[path.index()]; }
  [[nodiscard]] std::uint64_t by_device() const { return by(BarrierPath::device()); }
  [[nodiscard]] std::uint64_t by_software() const { return total() - by_device(); }
  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] const BarrierTimes& times() const { return times_; }

  struct Last {
    int member;           // -1: no barrier was timed
    std::uint64_t often;  // of the timed barriers
  };
  /// The member that most often arrived last, among those that were read.
  [[nodiscard]] Last last() const;
  /// How often `member` did.
  [[nodiscard]] std::uint64_t was_last(int member) const;

  /// "1234 barriers (1200 gba, 34 npu_v3); PE 0 waited 1.2 us on average, 30.0 us at most; ...".
  [[nodiscard]] std::string text() const;

 private:
  void note_arrival(std::uint64_t count);
  void take_times(std::uint64_t count, BarrierPath path);
  /// The members whose arrivals at barrier `count` are read: `size` from `first` on, after the last one from 0 on.
  struct Neighbours {
    int first, size;
  };
  [[nodiscard]] Neighbours neighbours(std::uint64_t count) const;

  const Job& job_;
  const TeamMap& map_;
  const SyncView& view_;
  int team_;
  int size_;
  std::uint64_t mask_;  // barriers whose numbers are kEach / 2 in these bits are timed
  std::uint64_t arrived_ = 0;
  std::uint64_t excluded_ = 0;
  bool traced_ = false;
  std::array<std::uint64_t, BarrierPath::kPaths> by_path_{};
  BarrierTimes times_;
  std::vector<std::uint64_t> last_;  // by member; of a large team, empty until a barrier is timed
};

}  // namespace shmem
