// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/active_set.hpp"

#include <fmt/format.h>

#include "base/size_text.hpp"
#include "shmem/layout/peers.hpp"

namespace shmem {

long ActiveSetMonitor::word(int member, long index) const {
  // Relaxed: nothing else that the member has stored is read.
  auto* theirs = reinterpret_cast<long*>(job().translate(words_ + index, set_.pe(member)));
  return std::atomic_ref<long>(*theirs).load(std::memory_order_relaxed);
}

/// The member that keeps this one waiting, by way of others: one that has not arrived, or that has been told all it
/// waits for and does not go on. A member that waits in a round has sent the messages of that round and of those
/// before, so the one that it waits for is in an earlier round.
int ActiveSetMonitor::blocker() const {
  int member = set_.member(job().me).value_or(0);
  for (int hops = 0; hops < kActiveSetRounds; ++hops) {
    const long round = word(member, kActiveSetProgress) - 1;
    if (round < 0 || round >= kActiveSetRounds || word(member, round) > 0) {
      break;
    }
    const int distance = (1 << round) % set_.size;
    member = (member + set_.size - distance) % set_.size;
  }
  return member;
}

std::errc ActiveSetMonitor::look() {
  const int member = blocker();
  // In this order: a member that has told the others and then ended is not the blocker any more.
  const bool gone = is_dead_or_zombie(job(), set_.pe(member)) && blocker() == member;
  return gone ? std::errc::owner_dead : std::errc{};
}

void ActiveSetMonitor::warn(std::chrono::seconds waited) const {
  int first_arrived = 0;
  while (first_arrived < set_.size && !has_arrived(first_arrived)) {
    ++first_arrived;
  }
  if (set_.size > first_arrived && set_.pe(first_arrived) == job().me) {  // one warning is enough
    WaitMonitor::warn(waited);
  }
}

std::string ActiveSetMonitor::set_text() const {
  return fmt::format("the {} from PE {} on with stride {}", base::count(set_.size, "PE"), name_.start, name_.stride);
}

std::string ActiveSetMonitor::subject() const {
  return fmt::format("shmem: PE {}: {} of {}", job().world_me(), name_.call, set_text());
}

std::string ActiveSetMonitor::awaited() const {
  const int member = blocker();
  if (!has_arrived(member)) {
    // No member can have left the barrier before this one arrives: all that are not in it have not arrived.
    return names_of(set_, [this](int each) { return !has_arrived(each); });
  }
  return member == set_.member(job().me)
             ? "no PE: all have arrived"
             : describe_pe(job(), set_.pe(member)) + ", which has arrived and does not go on";
}

std::string ActiveSetMonitor::ending(std::errc error) const {
  return error == std::errc::owner_dead ? "cannot complete: a PE has ended" : WaitMonitor::ending(error);
}

std::string ActiveSetMonitor::explain(std::errc error) const {
  return fmt::format("the wait for {} {}; it waited for {}", set_text(), ending(error), awaited());
}

}  // namespace shmem
