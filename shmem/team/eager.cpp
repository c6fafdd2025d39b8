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

bool EagerChannel::wait_for_data(EagerSlot& theirs) {
  return wait(theirs, count_);
}

bool EagerChannel::wait_for_place(std::uint64_t number) {
  std::uint64_t finished = count_;
  for (int member = 0; member < view_.size(); ++member) {
    if (member == view_.me()) {
      continue;
    }
    auto& theirs = view_.eager(member).finished;
    if (!wait(theirs, number)) {
      return false;
    }
    finished = std::min(finished, theirs.value.load(std::memory_order_relaxed));
  }
  finished_ = finished;
  return true;
}

}  // namespace shmem
