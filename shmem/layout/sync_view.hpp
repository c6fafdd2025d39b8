// SPDX-License-Identifier: Apache-2.0
// The PEs of a team, and the location of their sync memory. Plain arithmetic: no table per team.
#pragma once

#include <cstddef>
#include <optional>

#include "shmem/layout/job.hpp"

namespace shmem {

/// Members start, start + stride, ... of the world, or of the PEs of a node. The stride may be below 0, but is not 0.
struct TeamMap {
  int start = 0;
  int stride = 1;
  int size = 0;

  [[nodiscard]] int pe(int member) const { return start + member * stride; }
  [[nodiscard]] std::optional<int> member(int pe) const {
    const int distance = pe - start;
    const int member = distance / stride;
    if (distance % stride != 0 || member < 0 || member >= size) {
      return std::nullopt;
    }
    return member;
  }
};

class NeighbourRuns;

/// The sync memory of all members of one team, seen from one of them. A view: the Job owns the memory. REQUIRES: this
/// PE is a member.
class SyncView {
 public:
  /// `runs`, of the members on this node, outlives the view; none: the members are alike.
  SyncView(const Job& job, const TeamMap& map, int slot, const NeighbourRuns* runs = nullptr)
      : first_(&job.team_sync(slot, map.start)),
        first_rounds_(&job.round_words(slot, map.start)),
        first_eager_(&job.eager_words(slot, map.start)),
        first_rooms_(&job.eager_rooms(slot, map.start)),
        runs_(runs),
        start_(map.start),
        step_(map.stride),
        size_(map.size),
        me_(map.member(job.me).value_or(0)) {}

  /// The first `size` members alone. REQUIRES: this PE is one of them, or only reads their memory.
  [[nodiscard]] SyncView prefix(int size) const {
    SyncView view = *this;
    view.size_ = size;
    view.runs_ = nullptr;
    return view;
  }

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int me() const { return me_; }
  /// nullptr: the members are alike.
  [[nodiscard]] const NeighbourRuns* runs() const { return runs_; }
  /// By its number on this node.
  [[nodiscard]] int pe(int member) const { return start_ + member * static_cast<int>(step_); }
  [[nodiscard]] TeamSync& member(int i) const { return first_[i * step_]; }
  [[nodiscard]] TeamSync& mine() const { return member(me_); }
  [[nodiscard]] EagerWords& eager(int member) const { return first_eager_[member * step_]; }
  [[nodiscard]] EagerRooms& rooms(int member) const { return first_rooms_[member * step_]; }
  /// Word `i` of kRoundWords of a member.
  [[nodiscard]] SyncWord& round(int member, int i) const {
    return first_rounds_[member * step_][static_cast<std::size_t>(i)];
  }

 private:
  TeamSync* first_;
  RoundWords* first_rounds_;
  EagerWords* first_eager_;
  EagerRooms* first_rooms_;
  const NeighbourRuns* runs_;
  int start_;
  std::ptrdiff_t step_;
  int size_;
  int me_;
};

}  // namespace shmem
