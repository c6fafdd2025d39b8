// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/refusals.hpp"

#include <algorithm>
#include <cstddef>

#include "shmem/layout/remote_board.hpp"

namespace shmem {

Result<std::optional<Refusals>> Refusals::create(const Job& job, ProcessGroup& leaders, const std::vector<int>& pes,
                                                 int slot, std::uint32_t team) {
  Refusals made(job, pes, slot, team);
  constexpr auto kPlaces = static_cast<int>(std::tuple_size_v<RemoteBoard>);
  if (slot < kPlaces) {
    // Words of an earlier team, before another leader can store.
    made.mine(0).store(0, std::memory_order_relaxed);
    made.mine(1).store(0, std::memory_order_relaxed);
  }
  auto slots = leaders.allgather(slot);
  if (!slots) {
    return slots.error();
  }
  if (std::ranges::any_of(*slots, [](int theirs) { return theirs >= kPlaces; })) {
    return std::optional<Refusals>();
  }
  made.slots_ = *std::move(slots);
  return std::optional(std::move(made));
}

std::atomic<std::uint64_t>& Refusals::mine(std::uint64_t vote) const {
  return (*job_.remote_board)[static_cast<std::size_t>(slot_)].refused[vote & 1];
}

Result<void> Refusals::tell(int pe) const {
  const std::size_t offset = offsetof(RemoteArrival, refused) + (votes_ & 1) * sizeof(std::uint64_t);
  const std::uint64_t value = std::uint64_t{team_} << 32 | (static_cast<std::uint32_t>(pe) + 1);
  for (std::size_t leader = 0; leader < pes_.size(); ++leader) {
    if (pes_[leader] == job_.world_me()) {
      continue;
    }
    const RemotePlace word{pes_[leader], Segment::kBoard,
                           static_cast<std::uint64_t>(slots_[leader]) * sizeof(RemoteArrival) + offset};
    if (auto ok = job_.network->post_atomic(word, sizeof value, AtomicOperation::kSet, value); !ok) {
      return ok;
    }
  }
  return job_.network->quiet();
}

int Refusals::take() const {
  // The teller has waited until it was stored, before it arrived at the barrier. Acquire: as of any word that the
  // network stores. The word is free for the vote after the next.
  const std::uint64_t value = mine(votes_).exchange(0, std::memory_order_acquire);
  const auto pe = static_cast<std::uint32_t>(value);
  return value >> 32 == team_ && pe != 0 ? static_cast<int>(pe - 1) : -1;
}

}  // namespace shmem
