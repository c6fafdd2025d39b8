// SPDX-License-Identifier: Apache-2.0
// The PEs of a team, and the location of their sync memory. Plain arithmetic: no table per team.
#pragma once

#include <cstddef>
#include <optional>

#include "shmem/layout/job.hpp"

namespace shmem {

/// Members start, start + stride, ... of the world, or of the PEs of a node. The stride may be below 0, but is not 0.
/// Or a list of PEs, in a job on one node: the members that are left of a team. Then `start` is the first of them and
/// `stride` is 0.
struct TeamMap {
  int start = 0;
  int stride = 1;
  int size = 0;
  const int* list = nullptr;  // `size` PEs, owned by the TeamTable

  [[nodiscard]] bool is_list() const { return list != nullptr; }
  [[nodiscard]] int pe(int member) const {
    return is_list() ? list[static_cast<std::size_t>(member)] : start + member * stride;
  }
  [[nodiscard]] std::optional<int> member(int pe) const {
    if (is_list()) {
      return member_in_list(pe);
    }
    const int distance = pe - start;
    const int member = distance / stride;
    if (distance % stride != 0 || member < 0 || member >= size) {
      return std::nullopt;
    }
    return member;
  }

 private:
  [[nodiscard]] std::optional<int> member_in_list(int pe) const {
    for (int i = 0; i < size; ++i) {
      if (list[static_cast<std::size_t>(i)] == pe) {
        return i;
      }
    }
    return std::nullopt;
  }
};

/// The PEs whose sync memory a team uses: that of its members; a team of a list uses the memory of PEs 0, 1, ..., so
/// that it is evenly spaced, too. So such a team takes its slot on all PEs of the job (TeamSlots).
inline TeamMap rows_of(const TeamMap& map) {
  return map.is_list() ? TeamMap{0, 1, map.size} : map;
}

/// The sync memory of all members of one team, seen from one of them. A view: the Job owns the memory. REQUIRES: this
/// PE is a member.
class SyncView {
 public:
  SyncView(const Job& job, const TeamMap& map, int slot)
      : SyncView(job, rows_of(map), slot, map.member(job.me).value_or(0)) {}

  /// The first `size` members alone. REQUIRES: this PE is one of them, or only reads their memory.
  [[nodiscard]] SyncView prefix(int size) const {
    SyncView view = *this;
    view.size_ = size;
    return view;
  }

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int me() const { return me_; }
  /// A process that was admitted later is not the member, but has its place: is_gone().
  [[nodiscard]] std::uint64_t admissions() const { return admissions_; }
  /// By its number on this node. REQUIRES: not a team of a list.
  [[nodiscard]] int pe(int member) const { return start_ + member * static_cast<int>(step_); }
  [[nodiscard]] TeamSync& member(int i) const { return first_[i * step_]; }
  [[nodiscard]] TeamSync& mine() const { return member(me_); }
  [[nodiscard]] EagerWords& eager(int member) const { return first_eager_[member * step_]; }
  [[nodiscard]] EagerRooms& rooms(int member) const { return first_rooms_[member * step_]; }
  [[nodiscard]] bool has_broadcasts() const { return first_broadcasts_ != nullptr; }
  /// REQUIRES: has_broadcasts().
  [[nodiscard]] BroadcastPlaces& broadcasts(int member) const { return first_broadcasts_[member * step_]; }
  /// Word `i` of kRoundWords of a member.
  [[nodiscard]] SyncWord& round(int member, int i) const {
    return first_rounds_[member * step_][static_cast<std::size_t>(i)];
  }

 private:
  SyncView(const Job& job, const TeamMap& rows, int slot, int me)
      : first_(&job.team_sync(slot, rows.start)),
        first_rounds_(&job.round_words(slot, rows.start)),
        first_eager_(&job.eager_words(slot, rows.start)),
        first_rooms_(&job.eager_rooms(slot, rows.start)),
        first_broadcasts_(job.broadcast_places(slot, rows.start)),
        start_(rows.start),
        step_(rows.stride),
        size_(rows.size),
        me_(me),
        admissions_(job.metadata(job.me).admissions.load(std::memory_order_acquire)) {}

  TeamSync* first_;
  RoundWords* first_rounds_;
  EagerWords* first_eager_;
  EagerRooms* first_rooms_;
  BroadcastPlaces* first_broadcasts_;
  int start_;
  std::ptrdiff_t step_;
  int size_;
  int me_;
  std::uint64_t admissions_;
};

}  // namespace shmem
