// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_slots.hpp"

#include <algorithm>
#include <bit>

namespace shmem {

bool TeamSlots::set_taken(int pe, int slot, bool taken) const {
  auto& word = job_.metadata(pe).taken_teams[static_cast<std::size_t>(slot) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  // Release and acquire: a PE that takes a returned slot sees the words of the slot's last team.
  const std::uint64_t before =
      taken ? word.fetch_or(bit, std::memory_order_acq_rel) : word.fetch_and(~bit, std::memory_order_release);
  return ((before & bit) != 0) != taken;
}

bool TeamSlots::try_to_reserve(const TeamMap& map, int slot) const {
  for (int i = 0; i < map.size; ++i) {
    if (!set_taken(map.pe(i), slot, true)) {
      give_back({map.start, map.stride, i}, slot);
      return false;
    }
  }
  return true;
}

void TeamSlots::give_back(const TeamMap& map, int slot) const {
  for (int i = 0; i < map.size; ++i) {
    set_taken(map.pe(i), slot, false);
  }
}

// Threads of the members may be creating teams of other parents at the same time. A slot goes to the thread that first
// takes it on all members; if two threads try at once, possibly neither gets it.
int TeamSlots::reserve(const TeamMap& map, int first, int count) const {
  for (auto word = static_cast<std::size_t>(first) / 64; word < static_cast<std::size_t>(first + count) / 64; ++word) {
    std::uint64_t taken = 0;
    for (int i = 0; i < map.size; ++i) {
      taken |= job_.metadata(map.pe(i)).taken_teams[word].load(std::memory_order_relaxed);
    }
    for (; taken != ~std::uint64_t{0}; taken |= taken + 1) {  // the lowest bit that is 0
      const int slot = static_cast<int>(word) * 64 + std::countr_one(taken);
      if (try_to_reserve(map, slot)) {
        return slot;
      }
    }
  }
  return -1;
}

// The words that PEs wait for never go back: a PE of an earlier team that still reads them must find them large enough.
// No word is larger than the last barrier that its team entered. So the new team continues from the largest barrier
// that any member has entered.
std::uint64_t TeamSlots::last_count(const TeamMap& map, int slot) const {
  std::uint64_t count = 0;
  for (int i = 0; i < map.size; ++i) {
    const TeamSync& theirs = job_.team_sync(slot, map.pe(i));
    // Barriers and calls that carry data share one number. Relaxed: what reserve() has acquired comes after them.
    count =
        std::max({count, theirs.entered.load(std::memory_order_relaxed), theirs.calls.load(std::memory_order_relaxed)});
  }
  return count;
}

void TeamSlots::prepare(const TeamMap& map, int slot) const {
  const TeamMap rows = rows_of(map);
  const std::uint64_t count = last_count(rows, slot);
  for (int i = 0; i < rows.size; ++i) {
    clear(slot, rows.pe(i), count);
  }
}

void TeamSlots::clear(int slot, int pe, std::uint64_t count) const {
  TeamSync& mine = job_.team_sync(slot, pe);
  // Relaxed: a sync of the parent, or that which tells the members of the slot, precedes the new team's first use of
  // them.
  mine.entered.store(count, std::memory_order_relaxed);
  mine.left.store(count, std::memory_order_relaxed);
  mine.calls.store(count, std::memory_order_relaxed);
  mine.calls_over.store(count, std::memory_order_relaxed);
  EagerWords& eager = job_.eager_words(slot, pe);
  eager.finished.value.store(count, std::memory_order_relaxed);
  for (auto& level : eager.counts) {
    for (auto& arrivals : level) {
      arrivals.store(0, std::memory_order_relaxed);
    }
  }
  // Not arrived: the earlier team may have ended in the middle of a barrier.
  mine.counter.value.store(count << kArrivalBits, std::memory_order_relaxed);
  mine.arrival.word[0].store(0, std::memory_order_relaxed);
  mine.arrival.word[1].store(0, std::memory_order_relaxed);
  for (HeapVote& vote : mine.heap_vote) {
    vote.clear();
  }
  mine.survival.begun.store(0, std::memory_order_relaxed);
  mine.survival.verdict.store(0, std::memory_order_relaxed);
  mine.survival.made.store(0, std::memory_order_relaxed);
  mine.survival.ended.store(0, std::memory_order_relaxed);
}

}  // namespace shmem
