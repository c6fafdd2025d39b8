// SPDX-License-Identifier: Apache-2.0
// The barrier algorithms in software. A member stores the number of the barrier in words of the team and waits for
// words with at least that number; the algorithms differ in the words. `View` provides them, like SyncView.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "shmem/config/barrier_choice.hpp"
#include "shmem/cores/core.hpp"
#include "shmem/layout/metadata.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// Word `i` of a member in barrier `count`. Even and odd barriers have separate words: a late member's stores for one
/// barrier must not overwrite a faster member's stores for the next, perhaps by another algorithm. By the barrier after
/// that, all members have left the first one.
template <typename View>
SyncWord& round_word(const View& view, int member, int i, std::uint64_t count) {
  return view.round(member, 2 * i + static_cast<int>(count & 1));
}

/// The cores of a PE arrive, one or several of them signal the other members, the cores leave. Every core calls
/// `steps(core)`.
template <Core C, typename Steps>
std::errc between_core_syncs(C& core, Steps steps) {
  core.fence();  // this core's stores are in memory before another PE learns of this arrival
  if (const std::errc error = core.sync(); error != std::errc{}) {
    return error;
  }
  if (const std::errc error = steps(core); error != std::errc{}) {
    return error;
  }
  if (const std::errc error = core.sync(); error != std::errc{}) {
    return error;
  }
  core.dcci_all();  // this core's cached lines of other PEs date from before those arrived
  return {};
}

/// The same, but only core 0 signals.
template <Core C, typename Steps>
std::errc on_core_zero(C& core, Steps steps) {
  return between_core_syncs(core, [&steps](C& self) { return self.index() == 0 ? steps(self) : std::errc{}; });
}

/// Members first, first + stride, ... of a team: a part that synchronises on its own, led by its first member. A member
/// is in one such group in each barrier.
struct MemberGroup {
  int first = 0;
  int stride = 1;
  int size = 1;
};

/// Counts this arrival of `members` at `counter`. The last one to arrive stores the number of the barrier above the
/// arrival bits and clears those, which releases the waiters; earlier arrivals wake none. True for the last one.
template <Core C>
bool arrive_at(C& core, SyncWord& counter, int members, std::uint64_t count) {
  constexpr std::uint64_t kArrivals = (std::uint64_t{1} << kArrivalBits) - 1;
  const auto others = static_cast<std::uint64_t>(members) - 1;
  if (others > 0 && (core.fetch_add(counter, 1) & kArrivals) < others) {
    return false;
  }
  signal_set(core, counter, count << kArrivalBits);
  return true;
}

template <Core C>
std::errc wait_at(C& core, SyncWord& counter, std::uint64_t count) {
  return signal_wait_at_least(core, counter, count << kArrivalBits);
}

/// First half of a barrier of a group, called by one core of each member: the leader returns when all have called, the
/// others return at once.
template <Core C, typename View>
std::errc gather(C& core, const View& view, const MemberGroup& group, std::uint64_t count) {
  if (group.size == 1) {
    return {};
  }
  SyncWord& counter = view.member(group.first).counter;
  if (view.me() == group.first) {
    return wait_at(core, counter, count);
  }
  arrive_at(core, counter, group.size - 1, count);
  return {};
}

/// Second half, called by the same cores: the leader releases the others, which wait for it.
template <Core C, typename View>
std::errc release(C& core, const View& view, const MemberGroup& group, std::uint64_t count) {
  if (group.size == 1) {
    return {};
  }
  SyncWord& word = view.member(group.first).release;
  if (view.me() != group.first) {
    return signal_wait_at_least(core, word, count);
  }
  signal_set(core, word, count);
  return {};
}

/// A barrier of a group, called by one core of each. In round r a member stores to a word of its own, which the one 2^r
/// places to its right reads.
template <Core C, typename View>
std::errc disseminate(C& core, const View& view, const MemberGroup& group, std::uint64_t count) {
  const int me = (view.me() - group.first) / group.stride;
  for (int round = 0, distance = 1; distance < group.size; ++round, distance *= 2) {
    signal_set(core, round_word(view, view.me(), round, count), count);
    const int peer = group.first + (me + group.size - distance) % group.size * group.stride;
    if (const std::errc error = signal_wait_at_least(core, round_word(view, peer, round, count), count);
        error != std::errc{}) {
      return error;
    }
  }
  return {};
}

// The algorithms. Every core of every member calls; none returns before all members have called.

namespace algorithms {

/// npu_v1: dissemination by push, O(log2 n). In round r each PE stores to the one 2^r to its right and waits for the
/// one 2^r to its left; then it knows, at second hand, of 2^(r+1) PEs.
template <Core C, typename View>
std::errc npu_v1(C& core, const View& view, std::uint64_t count) {
  return on_core_zero(core, [&](C& self) {
    for (int round = 0, distance = 1; distance < view.size(); ++round, distance *= 2) {
      signal_set(self, round_word(view, (view.me() + distance) % view.size(), round, count), count);
      SyncWord& mine = round_word(view, view.me(), round, count);
      if (const std::errc error = signal_wait_at_least(self, mine, count); error != std::errc{}) {
        return error;
      }
    }
    return std::errc{};
  });
}

/// This core's part of phase p of npu_v2, where `distance` is radix^p. PEs a whole round or more away are already
/// known.
template <Core C, typename View>
std::errc npu_v2_phase(C& core, const View& view, std::uint64_t count, int radix, int phase, int distance) {
  const int size = view.size();
  const int first_word = phase * (radix - 1);
  const auto is_there = [&](int i) { return i < radix && i * distance < size; };
  for (int i = 1 + core.index(); is_there(i); i += core.count()) {
    const int peer = (view.me() + i * distance) % size;
    signal_set(core, round_word(view, peer, first_word + i - 1, count), count);
  }
  for (int i = 1 + core.index(); is_there(i); i += core.count()) {
    SyncWord& mine = round_word(view, view.me(), first_word + i - 1, count);
    if (const std::errc error = signal_wait_at_least(core, mine, count); error != std::errc{}) {
      return error;
    }
  }
  return {};
}

/// npu_v2: group dissemination over the vector cores, O(log_k n). In phase p each PE stores to k - 1 others, i * k^p to
/// its right for i = 1 .. k - 1, and waits for as many to its left. Its cores share this work.
template <Core C, typename View>
std::errc npu_v2(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
  return between_core_syncs(core, [&](C& self) {
    const int radix = tuning.radix;
    for (int phase = 0, distance = 1; distance < view.size(); ++phase, distance *= radix) {
      // In a phase this PE passes on what all of its cores learnt in the phases before.
      if (const std::errc error = phase > 0 ? self.sync() : std::errc{}; error != std::errc{}) {
        return error;
      }
      if (const std::errc error = npu_v2_phase(self, view, count, radix, phase, distance); error != std::errc{}) {
        return error;
      }
    }
    return std::errc{};
  });
}

/// npu_v3: centralized pull, O(n / k). Each PE writes one word of its own; its cores divide the team's PEs among
/// themselves and read their words.
template <Core C, typename View>
std::errc npu_v3(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
  return between_core_syncs(core, [&](C& self) {
    if (self.index() == 0) {
      signal_set(self, view.mine().round, count);
    }
    // Core c of the first `stride` reads words c, c + stride, ... to the right of this PE, so that PEs do not all read
    // the same word at once.
    const int stride = std::min(tuning.radix, self.count());
    const int first = self.index() < stride ? 1 + self.index() : view.size();
    for (int distance = first; distance < view.size(); distance += stride) {
      SyncWord& word = view.member((view.me() + distance) % view.size()).round;
      if (const std::errc error = signal_wait_at_least(self, word, count); error != std::errc{}) {
        return error;
      }
    }
    return std::errc{};
  });
}

/// central_counter: every member adds one at member 0, and the last one releases all. One word serves everything: two
/// PEs move one cache line, and with more PEs than processors each PE is scheduled once per barrier.
template <Core C, typename View>
std::errc central_counter(C& core, const View& view, std::uint64_t count) {
  return on_core_zero(core, [&](C& self) {
    SyncWord& counter = view.member(0).counter;
    return arrive_at(self, counter, view.size(), count) ? std::errc{} : wait_at(self, counter, count);
  });
}

/// tournament, O(log2 n). In round r a member whose number is an odd multiple of 2^r loses to the one 2^r below it, and
/// reports that all members it has beaten have arrived. A loser waits until its winner releases it.
template <Core C, typename View>
std::errc tournament(C& core, const View& view, std::uint64_t count) {
  return on_core_zero(core, [&](C& self) {
    const int me = view.me();
    int distance = 1;
    for (; distance < view.size() && me % (2 * distance) == 0; distance *= 2) {
      if (me + distance >= view.size()) {
        continue;  // wins without an opponent
      }
      if (const std::errc error = signal_wait_at_least(self, view.member(me + distance).round, count);
          error != std::errc{}) {
        return error;
      }
    }
    if (me != 0) {
      signal_set(self, view.mine().round, count);
      if (const std::errc error = signal_wait_at_least(self, view.member(me - distance).release, count);
          error != std::errc{}) {
        return error;
      }
    }
    if (distance > 1) {
      signal_set(self, view.mine().release, count);  // releases all members that this one has beaten
    }
    return std::errc{};
  });
}

/// Among the first `power` members, a power of two.
template <Core C, typename View>
std::errc double_recursively(C& core, const View& view, std::uint64_t count, int power) {
  for (int round = 0, distance = 1; distance < power; ++round, distance *= 2) {
    signal_set(core, round_word(view, view.me(), round, count), count);
    SyncWord& theirs = round_word(view, view.me() ^ distance, round, count);
    if (const std::errc error = signal_wait_at_least(core, theirs, count); error != std::errc{}) {
      return error;
    }
  }
  return {};
}

/// recursive_doubling, O(log2 n). In round r each member of a power of two synchronises with the one whose number
/// differs in bit r. A member beyond the largest power of two p arrives and leaves with the member p below it.
template <Core C, typename View>
std::errc recursive_doubling(C& core, const View& view, std::uint64_t count) {
  return on_core_zero(core, [&](C& self) {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(view.size())));
    if (view.me() >= power) {
      signal_set(self, view.mine().round, count);
      return signal_wait_at_least(self, view.member(view.me() - power).release, count);
    }
    if (view.me() + power >= view.size()) {
      return double_recursively(self, view, count, power);
    }
    if (const std::errc error = signal_wait_at_least(self, view.member(view.me() + power).round, count);
        error != std::errc{}) {
      return error;
    }
    const std::errc error = double_recursively(self, view, count, power);
    if (error == std::errc{}) {
      signal_set(self, view.mine().release, count);
    }
    return error;
  });
}

/// dissemination: as npu_v1, but by pull; O(log2 n).
template <Core C, typename View>
std::errc dissemination(C& core, const View& view, std::uint64_t count) {
  return on_core_zero(core, [&](C& self) {
    return disseminate(self, view, MemberGroup{.first = 0, .stride = 1, .size = view.size()}, count);
  });
}

/// basic, O(n): member 0 waits for each of the others in turn, then releases each.
template <Core C, typename View>
std::errc basic(C& core, const View& view, std::uint64_t count) {
  return on_core_zero(core, [&](C& self) {
    if (view.me() != 0) {
      signal_set(self, view.mine().round, count);
      return signal_wait_at_least(self, view.mine().release, count);
    }
    for (int i = 1; i < view.size(); ++i) {
      if (const std::errc error = signal_wait_at_least(self, view.member(i).round, count); error != std::errc{}) {
        return error;
      }
    }
    for (int i = 1; i < view.size(); ++i) {
      signal_set(self, view.member(i).release, count);
    }
    return std::errc{};
  });
}

/// adaptive: one of the others, by the size of the team; the rule needs no table.
template <Core C, typename View>
std::errc adaptive(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
  if (tuning.oversubscribed) {
    // Each wait may last until all other PEs have been scheduled: one word, one wait.
    return central_counter(core, view, count);
  }
  constexpr int kFew = 8;  // members that read each other's words in the time of a few rounds
  if (view.size() <= kFew) {
    return npu_v3(core, view, count, tuning);
  }
  return recursive_doubling(core, view, count);
}

/// hierarchical: in each group of neighbours a leader waits for the others; the leaders synchronise by dissemination
/// and release their groups.
template <Core C, typename View>
std::errc hierarchical(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
  return on_core_zero(core, [&](C& self) -> std::errc {
    const int most = std::min(tuning.group, view.size());
    const int first = view.me() / most * most;
    const MemberGroup group{.first = first, .stride = 1, .size = std::min(most, view.size() - first)};
    if (const std::errc error = gather(self, view, group, count); error != std::errc{}) {
      return error;
    }
    if (view.me() == first) {
      const MemberGroup leaders{.first = 0, .stride = most, .size = (view.size() + most - 1) / most};
      if (const std::errc error = disseminate(self, view, leaders, count); error != std::errc{}) {
        return error;
      }
    }
    return release(self, view, group, count);
  });
}

}  // namespace algorithms

/// Called by every core of every member with the same choice and the same `count`, one more than in the last barrier,
/// whatever its algorithm was: all algorithms keep the number of the barrier in their words and compare with >=, so a
/// team may change its algorithm between any two barriers. No core returns before all have called, and then it sees the
/// earlier stores of all. After an error the words are unusable for this team.
template <Core C, typename View>
std::errc arrive_and_wait(const BarrierChoice& choice, C& core, const View& view, std::uint64_t count) {
  const BarrierTuning& tuning = choice.tuning;
  switch (choice.algorithm) {
    case Algorithm::kNpuV1:
      return algorithms::npu_v1(core, view, count);
    case Algorithm::kNpuV2:
      return algorithms::npu_v2(core, view, count, tuning);
    case Algorithm::kNpuV3:
      return algorithms::npu_v3(core, view, count, tuning);
    case Algorithm::kCentralCounter:
      return algorithms::central_counter(core, view, count);
    case Algorithm::kTournament:
      return algorithms::tournament(core, view, count);
    case Algorithm::kRecursiveDoubling:
      return algorithms::recursive_doubling(core, view, count);
    case Algorithm::kDissemination:
      return algorithms::dissemination(core, view, count);
    case Algorithm::kBasic:
      return algorithms::basic(core, view, count);
    case Algorithm::kAdaptive:
      return algorithms::adaptive(core, view, count, tuning);
    case Algorithm::kHierarchical:
      return algorithms::hierarchical(core, view, count, tuning);
  }
  return std::errc::invalid_argument;
}

/// The first half of a barrier: member 0 returns when all have called, as in arrive_and_wait(). The others may return
/// earlier, and wait for what member 0 does next. Another call of either kind follows only after that.
template <Core C, typename View>
std::errc arrive_at_first_member(const BarrierChoice& choice, C& core, const View& view, std::uint64_t count) {
  const bool counts = choice.algorithm == Algorithm::kCentralCounter ||
                      (choice.algorithm == Algorithm::kAdaptive && choice.tuning.oversubscribed);
  if (!counts) {
    return arrive_and_wait(choice, core, view, count);
  }
  // The others need not wait for each other: the counter's last arrival releases member 0 alone.
  return on_core_zero(core, [&](C& self) {
    return gather(self, view, MemberGroup{.first = 0, .stride = 1, .size = view.size()}, count);
  });
}

/// A split-phase barrier: each member arrives at barrier `count`, and later tests or waits for its end. It is
/// central_counter for every team, because arriving there waits for no member. Members that use CentralCounter take
/// part in the same barrier.
struct SplitSync {
  static void arrive(const WaitPolicy& policy, const SyncView& view, std::uint64_t count) {
    const auto never_asked = [] { return std::errc{}; };
    SoloCore core(policy, never_asked);
    arrive_at(core, counter(view), view.size(), count);
  }

  static bool is_over(const SyncView& view, std::uint64_t count) {
    // Acquire: pairs with the last member's arrive_at().
    return counter(view).value.load(std::memory_order_acquire) >= count << kArrivalBits;
  }

  template <std::invocable Check>
  static std::errc wait(const WaitPolicy& policy, const SyncView& view, std::uint64_t count, Check& check) {
    SoloCore core(policy, check);
    return wait_at(core, counter(view), count);
  }

 private:
  static SyncWord& counter(const SyncView& view) { return view.member(0).counter; }
};

}  // namespace shmem
