// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/incoherent/machine.hpp"

#include <numeric>
#include <utility>

namespace incoherent {

Machine::Machine(std::span<const int> cores_of, std::span<shmem::SyncWord> lines, Name name)
    : waiters_(lines.size()),
      waits_for_(std::reduce(cores_of.begin(), cores_of.end(), std::size_t{0})),
      name_(std::move(name)),
      caches_(static_cast<int>(waits_for_.size()), lines, [this](int line) { wake_waiters(line); }),
      scheduler_(static_cast<int>(waits_for_.size())) {
  for (const int cores : cores_of) {
    pes_.push_back({static_cast<int>(pe_of_.size()), cores, {}});
    pe_of_.insert(pe_of_.end(), static_cast<std::size_t>(cores), static_cast<int>(pes_.size()) - 1);
  }
}

std::optional<std::string> Machine::run(std::uint64_t seed, Sites& sites, const Scheduler::Body& body) {
  random_ = Random(seed);
  sites_ = &sites;
  failure_.reset();
  for (auto& waiters : waiters_) {
    waiters.clear();
  }
  for (Pe& pe : pes_) {
    pe.met.clear();
  }
  caches_.reset(random_.next());
  scheduler_.run(random_.next(), body, [this] { report_hang(); });
  return failure_;
}

void Machine::fail(std::string why) {
  if (!failed()) {
    failure_ = std::move(why);
    scheduler_.cancel();
  }
}

void Machine::step() {
  scheduler_.step();
  caches_.drift(scheduler_.current());
}

std::errc Machine::outcome() const {
  return failed() ? std::errc::operation_canceled : std::errc{};
}

std::uint64_t Machine::load(const shmem::SyncWord& word) {
  step();
  return caches_.load(scheduler_.current(), caches_.line_of(&word));
}

void Machine::store(const shmem::SyncWord& word, std::uint64_t value) {
  step();
  caches_.store(scheduler_.current(), caches_.line_of(&word), value);
}

std::uint64_t Machine::fetch_add(const shmem::SyncWord& word, std::uint64_t value) {
  step();
  return caches_.fetch_add(caches_.line_of(&word), value);
}

void Machine::fence(const Site& site) {
  step();
  if (sites_->pass(site)) {
    caches_.fence(scheduler_.current());
  }
}

void Machine::dcci(const void* address, const Site& site) {
  step();
  if (sites_->pass(site)) {
    caches_.dcci(scheduler_.current(), caches_.line_of(address));
  }
}

void Machine::dcci_all(const Site& site) {
  step();
  if (sites_->pass(site)) {
    caches_.dcci_all(scheduler_.current());
  }
}

std::errc Machine::sync(const Site& site) {
  step();
  const int core = scheduler_.current();
  Pe& pe = pes_[static_cast<std::size_t>(pe_of(core))];
  if (pe.cores == 1 || !sites_->pass(site)) {
    return outcome();
  }
  if (static_cast<int>(pe.met.size()) + 1 < pe.cores) {
    pe.met.push_back(core);
    waits_for_[static_cast<std::size_t>(core)] = kMeeting;
    scheduler_.block();
    return outcome();
  }
  for (const int other : std::exchange(pe.met, {})) {
    scheduler_.wake(other);
  }
  return outcome();
}

std::errc Machine::pause(const shmem::SyncWord& word, std::optional<std::uint32_t>& last_version) {
  step();
  const int line = caches_.line_of(&word);
  const std::uint32_t version = caches_.version(line);
  // The first pause, and a pause after a change, returns at once, as in a spinning wait. So do others now and then.
  if (std::exchange(last_version, version) == version && !random_.chance(128)) {
    const int core = scheduler_.current();
    waits_for_[static_cast<std::size_t>(core)] = line;
    waiters_[static_cast<std::size_t>(line)].push_back(core);
    scheduler_.block();
  }
  return outcome();
}

void Machine::wake_waiters(int line) {
  for (const int core : std::exchange(waiters_[static_cast<std::size_t>(line)], {})) {
    scheduler_.wake(core);
  }
}

/// No core can take a step, so memory will not change: values in caches may stay there without end.
void Machine::report_hang() {
  constexpr int kEnough = 6;
  std::string text = "no core can continue:";
  int blocked = 0;
  for (int core = 0; core < static_cast<int>(pe_of_.size()); ++core) {
    if (scheduler_.blocked(core) && blocked++ < kEnough) {
      text += "\n  " + why_blocked(core);
    }
  }
  fail(text + (blocked > kEnough ? "\n  and " + std::to_string(blocked - kEnough) + " cores more" : ""));
}

std::string Machine::why_blocked(int core) const {
  std::string text = "PE " + std::to_string(pe_of(core)) + " core " + std::to_string(index_of(core)) + " waits for ";
  const int line = waits_for_[static_cast<std::size_t>(core)];
  text += line == kMeeting ? "the other cores"
                           : name_(line) + ", " + std::to_string(caches_.in_memory(line)) + " in memory";
  for (const int unwritten : caches_.unwritten(core)) {
    text += "; keeps " + name_(unwritten) + " in its cache";
  }
  return text;
}

}  // namespace incoherent
