// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/barrier_trials.hpp"

#include <algorithm>
#include <array>

namespace shmem {
namespace {

/// Algorithms that may be the fastest among up to `most` members with a processor each.
struct Contenders {
  int most;
  std::array<Algorithm, 3> algorithms;
};
constexpr std::array<Contenders, 2> kContenders{
    {{8, {Algorithm::kCentralCounter, Algorithm::kNpuV3, Algorithm::kDissemination}},
     {1 << 30, {Algorithm::kDissemination, Algorithm::kRecursiveDoubling, Algorithm::kNpuV2}}}};

}  // namespace

BarrierTrials BarrierTrials::among(const BarrierChoice& choice, int members) {
  BarrierTrials trials(choice);
  const auto* const contenders =
      std::ranges::find_if(kContenders, [members](const Contenders& each) { return members <= each.most; });
  for (const Algorithm algorithm : contenders->algorithms) {
    if (algorithm != choice.algorithm) {
      trials.candidates_.push_back({{.algorithm = algorithm, .tuning = choice.tuning}});
    }
  }
  return trials;
}

BarrierChoice BarrierTrials::next() const {
  if (over()) {
    const auto found = result();
    return found ? found->choice : candidates_.front().choice;
  }
  BarrierChoice choice = candidates_[turn()].choice;
  choice.trial = true;
  return choice;
}

void BarrierTrials::note(Duration trial, Duration since_first) {
  if (over()) {
    return;
  }
  Duration& least = candidates_[turn()].least;
  least = std::min(least, trial);
  ++made_;
  if (made_ <= candidates_.size()) {
    warm_ = since_first;
    over_ = since_first > kHopeless;
    return;
  }
  longest_ = turn() == 1 ? trial : std::max(longest_, trial);
  over_ = made_ == (1 + kMost) * candidates_.size() || since_first - warm_ + longest_ > kBudget;
}

std::optional<BarrierTrials::Result> BarrierTrials::result() const {
  if (candidates_.size() < 2 || made_ < (1 + kLeast) * candidates_.size()) {
    return std::nullopt;
  }
  const Candidate& first = candidates_.front();
  const Candidate& best = *std::ranges::min_element(candidates_, {}, &Candidate::least);
  const Candidate& chosen = best.least * 100 < first.least * (100 - kMargin) ? best : first;
  return Result{chosen.choice, chosen.least};
}

std::optional<MeasuredBarrier::Known> MeasuredBarrier::load() const {
  const std::uint64_t word = word_.load(std::memory_order_relaxed);
  if (word == 0) {
    return std::nullopt;
  }
  return Known{static_cast<Algorithm>((word & 0xff) - 1), BarrierTrials::Duration(word >> 8)};
}

void MeasuredBarrier::store(const Known& known) {
  const auto each = static_cast<std::uint64_t>(known.each.count());
  word_.store(each << 8 | (static_cast<std::uint64_t>(known.algorithm) + 1), std::memory_order_relaxed);
}

}  // namespace shmem
