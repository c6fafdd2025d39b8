// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/sharing.hpp"

#include <sched.h>

#include <algorithm>
#include <new>

namespace shmem {

using Clock = std::chrono::steady_clock;

Cpus free_of_pes(const Cpus& allowed, int cpu, std::span<const Sighting> others, SightingTick now) {
  Cpus free;
  std::ranges::copy_if(allowed, std::back_inserter(free), [&](int candidate) {
    return candidate != cpu && std::ranges::none_of(others, [&](const Sighting& other) {
             return other.is_recent(now) && other.cpu == candidate;
           });
  });
  return free;
}

bool MoveLimit::take(Clock::time_point now) {
  const Clock::time_point next{Clock::duration(next_.load(std::memory_order_relaxed))};
  if (now < next) {
    return false;
  }
  const Clock::duration last(pause_.load(std::memory_order_relaxed));
  const bool again = last.count() != 0 && now - next < last;  // together again soon: the move has not helped
  const Clock::duration pause = again ? std::min<Clock::duration>(2 * last, kLongest) : kShortest;
  pause_.store(pause.count(), std::memory_order_relaxed);
  next_.store((now + pause).time_since_epoch().count(), std::memory_order_relaxed);
  return true;
}

void SharingWatch::say(const Sighting& sighting) {
  const std::uint64_t word = sighting.word();
  auto& mine = pes_[me_]->sighting;
  // Relaxed: a hint. Written only if it changes, so that others keep the line.
  if (mine.load(std::memory_order_relaxed) != word) {
    mine.store(word, std::memory_order_relaxed);
  }
}

std::vector<Sighting> SharingWatch::others() const {
  std::vector<Sighting> all;
  all.reserve(pes_.size());
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    if (pe != me_) {
      all.push_back(sighting_of(pe));
    }
  }
  return all;
}

SharingWatch::Verdict SharingWatch::look(Clock::time_point now) {
  const int cpu = ::sched_getcpu();
  const SightingTick tick = tick_of(now);
  say({cpu, tick});
  Company company;
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    if (pe != me_) {
      company.add(sighting_of(pe), cpu, tick);
    }
  }
  if (!company.together) {
    return company.known ? Verdict::kApart : Verdict::kUnknown;
  }
  return limit_.take(now) && move_from(cpu, tick) ? Verdict::kMoved : Verdict::kTogether;
}

namespace {

/// Gives the thread its processors back, unless another one has given it others meanwhile. A thread that may use all
/// processors of its control group gets those that are added to the group later, too.
void give_back(const Cpus& before, const Cpus& now) try {
  const auto current = own_cpus();
  if (current && *current != now) {
    return;
  }
  run_on_any();
  if (const auto all = own_cpus(); !all || *all != before) {
    run_on(before);
  }
} catch (const std::bad_alloc&) {
  run_on(before);
}

}  // namespace

bool SharingWatch::move_from(int cpu, SightingTick now) try {
  const auto allowed = own_cpus();
  if (!allowed) {
    return false;
  }
  const Cpus targets = free_of_pes(*allowed, cpu, others(), now);
  if (targets.empty()) {
    return false;
  }
  // The others must not take this PE to be here any more while it waits for its turn there.
  say({targets.size() == 1 ? targets.front() : -1, now});
  if (!run_on(targets)) {
    refused_.store(true, std::memory_order_relaxed);
    return false;
  }
  give_back(*allowed, targets);
  moves_.fetch_add(1, std::memory_order_relaxed);
  return true;
} catch (const std::bad_alloc&) {
  return false;  // a wait must not fail for lack of memory
}

}  // namespace shmem
