// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/size_text.hpp"
#include "shmem/barrier/trace.hpp"

namespace shmem {
namespace {

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

/// "12.3 us", "12.3 ms" from 10 ms on, "12.3 s" from 10 s on.
std::string time_text(std::uint64_t nanoseconds) {
  for (const auto& [unit, name] : {std::pair{std::uint64_t{1'000'000'000}, "s"}, {std::uint64_t{1'000'000}, "ms"}}) {
    if (nanoseconds >= 10 * unit) {
      return fmt::format("{}.{} {}", nanoseconds / unit, nanoseconds % unit / (unit / 10), name);
    }
  }
  const std::uint64_t tenths = nanoseconds / 100;
  return fmt::format("{}.{} us", tenths / 10, tenths % 10);
}

std::string average_and_longest(std::uint64_t sum, std::uint64_t count, std::uint64_t longest) {
  return fmt::format("{} on average, {} at most", time_text(sum / count), time_text(longest));
}

/// Teams of up to this size have their counts from the start, so that no barrier allocates them. A larger one allocates
/// them in the first barrier that is timed: a job may have many that make none.
constexpr int kFewMembers = 64;

}  // namespace

BarrierStatistics::BarrierStatistics(const Job& job, const TeamMap& map, const SyncView& view, int team, int size)
    : job_(job),
      map_(map),
      view_(view),
      team_(team),
      size_(size),
      mask_(job.options.info || job.trace != nullptr ? 0 : kEach - 1),
      last_(view.size() <= kFewMembers ? static_cast<std::size_t>(view.size()) : 0) {}

void BarrierStatistics::note_arrival(std::uint64_t count) {
  arrived_ = now();
  ArrivalTimes& mine = view_.mine().times;
  // Relaxed: the barrier itself orders them before their readers.
  mine.number[count & 1].store(count, std::memory_order_relaxed);
  mine.time[count & 1].store(arrived_, std::memory_order_relaxed);
}

BarrierStatistics::Neighbours BarrierStatistics::neighbours(std::uint64_t count) const {
  const int size = view_.size();
  if (mask_ == 0 || size <= kMostRead) {
    return {0, size};
  }
  return {static_cast<int>(count / kEach * kMostRead % static_cast<std::uint64_t>(size)), kMostRead};
}

void BarrierStatistics::take_times(std::uint64_t count, BarrierPath path) {
  const std::uint64_t left = now();
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  int last_member = view_.me();
  const Neighbours read = neighbours(count);
  for (int i = 0; i < read.size; ++i) {
    const int member = (read.first + i) % view_.size();
    const ArrivalTimes& theirs = view_.member(member).times;
    // Another number: that member does not time this barrier.
    if (theirs.number[count & 1].load(std::memory_order_relaxed) != count) {
      continue;
    }
    const std::uint64_t time = theirs.time[count & 1].load(std::memory_order_relaxed);
    first = std::min(first, time);
    // Among members that arrived at the same time the lowest, so that all name the same one.
    if (time > last || (time == last && member < last_member)) {
      last = time;
      last_member = member;
    }
  }
  if (last == 0) {
    first = last = arrived_;  // no neighbour times this barrier
  }
  const std::uint64_t wait = left - arrived_;
  ++times_.timed;
  times_.wait += wait;
  times_.longest_wait = std::max(times_.longest_wait, wait);
  times_.skew += last - first;
  times_.longest_skew = std::max(times_.longest_skew, last - first);
  last_.resize(static_cast<std::size_t>(view_.size()));
  ++last_[static_cast<std::size_t>(last_member)];
  if (job_.trace != nullptr) {
    if (!traced_) {
      job_.trace->name_team(team_, size_);
    }
    traced_ = true;
    job_.trace->add(
        {team_, count - excluded_, path.name(), arrived_, left, job_.nodes.world(map_.pe(last_member)), last - first});
  }
}

std::uint64_t BarrierStatistics::total() const {
  return std::accumulate(by_path_.begin(), by_path_.end(), std::uint64_t{0});
}

BarrierStatistics::Last BarrierStatistics::last() const {
  const auto most = std::max_element(last_.begin(), last_.end());
  return times_.timed != 0 ? Last{static_cast<int>(most - last_.begin()), *most} : Last{-1, 0};
}

std::uint64_t BarrierStatistics::was_last(int member) const {
  return last_.empty() ? 0 : last_[static_cast<std::size_t>(member)];
}

std::string BarrierStatistics::text() const {
  std::string paths;
  for (std::size_t i = 0; i < by_path_.size(); ++i) {
    if (by_path_[i] != 0) {
      paths += fmt::format("{}{} {}", paths.empty() ? "" : ", ", by_path_[i], BarrierPath(i).name());
    }
  }
  std::string all = fmt::format("{}{}", base::count(total(), "barrier"), paths.empty() ? "" : " (" + paths + ")");
  if (times_.timed == 0) {
    return all;
  }
  all += fmt::format("; PE {} waited {}", job_.world_me(),
                     average_and_longest(times_.wait, times_.timed, times_.longest_wait));
  if (view_.size() == 1) {
    return all;
  }
  const Last most = last();
  return fmt::format("{}; the members{} arrived within {}; PE {} arrived last most often, in {} of {}", all,
                     view_.size() < size_ ? " on its node" : "",
                     average_and_longest(times_.skew, times_.timed, times_.longest_skew),
                     job_.nodes.world(map_.pe(most.member)), most.often, times_.timed);
}

}  // namespace shmem
