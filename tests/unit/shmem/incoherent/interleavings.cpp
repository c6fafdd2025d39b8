// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/incoherent/interleavings.hpp"

#include <algorithm>
#include <utility>

namespace incoherent {

Interleavings::Interleavings(int threads)
    : threads_(static_cast<std::size_t>(threads)), fibers_(threads, [this](int thread) { serve(thread); }) {}

bool Interleavings::all_end(const Body& body, const Site& weakened) {
  weakened_ = weakened;
  choices_.clear();
  schedules_ = 0;
  do {
    ++schedules_;
    if (!run_once(body)) {
      return false;
    }
  } while (next_schedule());
  return true;
}

bool Interleavings::run_once(const Body& body) {
  body_ = &body;
  depth_ = 0;
  lost_ = false;
  history_.fill({0});
  woken_ = {};
  threads_.assign(threads_.size(), {});
  go_on();
  return !lost_;
}

void Interleavings::serve(int thread) {
  for (;;) {
    (*body_)(thread);
    running().ended = true;
    go_on();
  }
}

/// Depth first: keeps the choices of the last schedule up to the last one that has another alternative, and takes that.
bool Interleavings::next_schedule() {
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().of) {
    choices_.pop_back();
  }
  if (choices_.empty()) {
    return false;
  }
  ++choices_.back().taken;
  return true;
}

std::size_t Interleavings::choose(std::size_t of) {
  if (of == 1) {
    return 0;
  }
  if (depth_ == choices_.size()) {
    choices_.push_back({0, of});
  }
  return choices_[depth_++].taken;
}

void Interleavings::go_on() {
  fibers_.switch_to(next());
}

/// Chooses a thread that is awake, perhaps after delayed changes have reached memory; kCaller when all have ended.
int Interleavings::next() {
  for (;;) {
    std::vector<int> awake;
    std::vector<std::pair<Thread*, std::size_t>> delayed;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      if (!thread.ended && thread.asleep_on == kAwake) {
        awake.push_back(static_cast<int>(i));
      }
      for (std::size_t change = 0; change < thread.delayed.size(); ++change) {
        delayed.emplace_back(&thread, change);
      }
    }
    if (!awake.empty() || !delayed.empty()) {
      const std::size_t taken = lost_ ? 0 : choose(awake.size() + delayed.size());
      if (taken < awake.size()) {
        return awake[taken];
      }
      const auto [thread, change] = delayed[taken - awake.size()];
      apply(thread->delayed[change]);
      thread->delayed.erase(thread->delayed.begin() + static_cast<std::ptrdiff_t>(change));
    } else if (std::ranges::all_of(threads_, &Thread::ended)) {
      return Fibers::kCaller;
    } else {
      lost_ = true;
      for (Thread& thread : threads_) {
        thread.asleep_on = kAwake;  // they run to their end, so that another schedule can begin
      }
    }
  }
}

bool Interleavings::is_ordered(std::memory_order order, const Site& site) {
  return order == std::memory_order_seq_cst && sites_.pass(site) && site != weakened_;
}

Interleavings::Versions Interleavings::now() const {
  Versions versions{};
  std::ranges::transform(history_, versions.begin(), [](const auto& values) { return values.size() - 1; });
  return versions;
}

std::uint64_t Interleavings::apply(const Change& change) {
  auto& values = history_[change.word];
  const std::uint64_t before = values.back();
  values.push_back(change.add ? before + change.operand : change.operand);
  return before;
}

/// Chooses one of the values that the word has had since version `oldest`.
std::uint64_t Interleavings::look(std::size_t word, std::size_t oldest) {
  const std::size_t newest = history_[word].size() - 1;
  std::size_t& seen = running().seen[word];
  seen = lost_ ? newest : newest - choose(newest - std::max(oldest, seen) + 1);
  return history_[word][seen];
}

std::uint64_t Interleavings::load(std::size_t word, std::memory_order order, const Site& site) {
  go_on();
  if (is_ordered(order, site)) {
    running().earliest = now();
  }
  const std::uint64_t value = look(word, running().earliest[word]);
  if (order == std::memory_order_acquire) {
    running().earliest = now();
  }
  return value;
}

std::uint64_t Interleavings::modify(const Change& change, std::memory_order order, const Site& site) {
  const Versions begun = now();
  go_on();
  if (!is_ordered(order, site)) {
    running().delayed.push_back(change);
    return history_[change.word].back();
  }
  for (const Change& earlier : std::exchange(running().delayed, {})) {
    apply(earlier);
  }
  const std::uint64_t before = apply(change);
  running().earliest = begun;
  running().seen[change.word] = history_[change.word].size() - 1;
  return before;
}

void Interleavings::sleep(std::size_t word, std::uint64_t seen) {
  go_on();
  if (!lost_ && look(word, std::max(running().earliest[word], woken_[word])) == seen) {
    running().asleep_on = word;
    go_on();
  }
}

bool Interleavings::store_barrier() {
  if (!has_store_barrier_) {
    return false;
  }
  go_on();
  for (Thread& thread : threads_) {
    for (const Change& earlier : std::exchange(thread.delayed, {})) {
      apply(earlier);
    }
  }
  for (Thread& thread : threads_) {
    thread.earliest = now();
  }
  return true;
}

void Interleavings::wake(std::size_t word) {
  go_on();
  woken_[word] = now()[word];
  for (Thread& thread : threads_) {
    if (thread.asleep_on == word) {
      thread.asleep_on = kAwake;
    }
  }
}

}  // namespace incoherent
