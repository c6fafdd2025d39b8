// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/eager.hpp"

#include <functional>

namespace shmem {

template <typename Word>
bool EagerChannel::wait(Word& word, std::uint64_t number) {
  LateMonitor monitor([this](std::optional<BarrierMonitor>& made) -> BarrierMonitor& {
    return made.emplace(job_, map_, view_,
                        BarrierName{.count = count_, .team = slot_, .algorithm = "eager", .call = true});
  });
  const std::errc error = wait_on(
      word, job_.policy, [number](std::uint64_t seen) { return seen >= number; }, std::ref(monitor));
  if (error != std::errc{}) {
    failed_ = Error{error, monitor.explain(error)};
    return false;
  }
  return true;
}

std::unique_ptr<const NeighbourLevels> EagerChannel::levels_of(const SyncView& view) {
  if (view.size() <= kMostOneStep) {
    return nullptr;
  }
  return std::make_unique<NeighbourLevels>(view.size(), view.me());
}

bool EagerChannel::wait_for_data(EagerHead& theirs) {
  return wait(theirs, count_);
}

bool EagerChannel::wait_for_place(std::uint64_t number) {
  const bool by_one_word = levels_ != nullptr;
  std::uint64_t finished = count_;
  for (int member = 0; member < (by_one_word ? 1 : view_.size()); ++member) {
    if (member == view_.me() && !by_one_word) {
      continue;
    }
    auto& theirs = view_.eager(member).finished;
    if (!wait(theirs, number)) {
      return false;
    }
    // Acquire, as in wait(): it may be a later number, whose readers this member must not overtake either.
    finished = std::min(finished, theirs.value.load(std::memory_order_acquire));
  }
  finished_ = finished;
  return true;
}

bool EagerChannel::least(Numbers& numbers, bool for_all) {
  const int last = levels_ ? levels_->last() : 0;
  for (int level = 0; level <= last; ++level) {
    if (!begin() || !give(numbers.data(), sizeof numbers)) {
      return false;
    }
    const bool takes = level < last ? levels_->leads_unit(level + 1) : for_all || view_.me() == 0;
    const auto group = levels_ ? levels_->group(level) : NeighbourLevels::Group{0, view_.size()};
    for (int unit = group.begin; takes && unit < group.end; ++unit) {
      const Given given = take(levels_ ? levels_->first(level, unit) : unit);
      if (!given) {
        return false;
      }
      Numbers theirs;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
      std::memcpy(&theirs, given.data, sizeof theirs);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = std::min(numbers[i], theirs[i]);
      }
    }
    // A unit's leader gives in the last call what its members have given in the calls before it.
    end(level == last && takes ? before(last) : Begun::kUnknown);
  }
  return true;
}

/// Turns end in their order: a member that completes a group's turn counts the group in the next larger one before it
/// takes part in another turn.
void EagerChannel::count_finished() {
  const auto turn = static_cast<std::size_t>(count_ / kFinishedEach % kFinishedTurns);
  std::size_t level = 0;
  for (int unit = 1; unit < view_.size(); unit *= kFinishedGroup, ++level) {
    const int group = unit * kFinishedGroup;
    const int first = view_.me() / group * group;
    const int others = std::min(kFinishedGroup, (view_.size() - first + unit - 1) / unit) - 1;
    auto& arrivals = view_.eager(first).counts[level][turn];
    // Release: what this member has read was read before. Acquire: the last one passes that on for all of them.
    if (others > 0 && arrivals.fetch_add(1, std::memory_order_acq_rel) < others) {
      return;
    }
    // Relaxed: members count themselves here again only after they have heard, at second hand, of publish().
    arrivals.store(0, std::memory_order_relaxed);
  }
  publish(view_.eager(0).finished, count_);
}

}  // namespace shmem
