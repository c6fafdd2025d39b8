// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/sharing.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace shmem {

using Clock = std::chrono::steady_clock;

namespace {

bool has_pe(int cpu, std::span<const Sighting> pes, SightingTick now) {
  return std::ranges::any_of(pes, [&](const Sighting& pe) { return pe.is_recent(now) && pe.cpu == cpu; });
}

}  // namespace

void keep_free_of_pes(Cpus& cpus, int cpu, std::span<const Sighting> others, SightingTick now) {
  std::erase_if(cpus, [&](int candidate) { return candidate == cpu || has_pe(candidate, others, now); });
}

void keep_used_by_pes(Cpus& cpus, int cpu, std::span<const Sighting> others, SightingTick now) {
  std::erase_if(cpus, [&](int candidate) { return candidate == cpu || !has_pe(candidate, others, now); });
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

SharingWatch::SharingWatch(std::vector<RunsOn*> pes, int me, int processors)
    : pes_(std::move(pes)), me_(static_cast<std::size_t>(me)), processors_(processors) {
  // Relaxed: a hint. Until all have said it, the time that they have used is unknown.
  pes_[me_]->pid.store(::getpid(), std::memory_order_relaxed);
  const auto room = static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L));
  for (Cpus* const cpus : {&allowed_, &targets_, &current_}) {
    cpus->reserve(room);
  }
  others_.reserve(pes_.size());
}

std::optional<std::chrono::nanoseconds> SharingWatch::unused(Clock::time_point now) const {
  std::chrono::nanoseconds unused = processors_ * (now - begin_);
  for (const RunsOn* pe : pes_) {
    clockid_t clock{};
    timespec used{};
    // Zero would mean this process. A number of another PID namespace gives an error, or too little use.
    const pid_t pid = pe->pid.load(std::memory_order_relaxed);
    if (processors_ == 0 || pid == 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
      return std::nullopt;
    }
    unused -= std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
  }
  return unused;
}

void SharingWatch::say(const Sighting& sighting) {
  const std::uint64_t word = sighting.word();
  auto& mine = pes_[me_]->sighting;
  // Relaxed: a hint. Written only if it changes, so that others keep the line.
  if (mine.load(std::memory_order_relaxed) != word) {
    mine.store(word, std::memory_order_relaxed);
  }
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
  return limit_.take(now) && move_from(cpu, tick, keep_free_of_pes) ? Verdict::kMoved : Verdict::kTogether;
}

void SharingWatch::invite(Clock::time_point now) {
  say({::sched_getcpu(), tick_of(now)});
}

bool SharingWatch::follow(Clock::time_point now, bool may_move) {
  say({});
  if (!may_move) {
    return false;
  }
  const int cpu = ::sched_getcpu();
  const SightingTick tick = tick_of(now);
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    if (const Sighting other = sighting_of(pe); pe != me_ && other.is_recent(tick) && other.cpu != cpu) {
      return limit_.take(now) && move_from(cpu, tick, keep_used_by_pes);
    }
  }
  return false;
}

/// Gives the thread its processors back, unless another one has given it others meanwhile. A thread that may use all
/// processors of its control group gets those that are added to the group later, too.
void SharingWatch::give_back() try {
  if (own_cpus(current_) && current_ != targets_) {
    return;
  }
  run_on_any();
  if (!own_cpus(current_) || current_ != allowed_) {
    run_on(allowed_);
  }
} catch (const std::bad_alloc&) {
  run_on(allowed_);
}

bool SharingWatch::move_from(int cpu, SightingTick now, Keep& keep) {
  // Acquire and release: the next thread that moves uses the same room.
  if (is_moving_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  bool has_moved = false;
  try {
    has_moved = move_in_room(cpu, now, keep);
  } catch (const std::bad_alloc&) {  // a wait must not fail for lack of memory
  }
  is_moving_.store(false, std::memory_order_release);
  return has_moved;
}

bool SharingWatch::move_in_room(int cpu, SightingTick now, Keep& keep) {
  if (!own_cpus(allowed_)) {
    return false;
  }
  others_.clear();
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    if (pe != me_) {
      others_.push_back(sighting_of(pe));
    }
  }
  targets_ = allowed_;
  keep(targets_, cpu, others_, now);
  if (targets_.empty()) {
    return false;
  }
  // The others must not take this PE to be here any more while it waits for its turn there.
  say({targets_.size() == 1 ? targets_.front() : -1, now});
  if (!run_on(targets_)) {
    refused_.store(true, std::memory_order_relaxed);
    return false;
  }
  give_back();
  moves_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace shmem
