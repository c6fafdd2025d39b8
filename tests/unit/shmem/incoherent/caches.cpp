// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/incoherent/caches.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace incoherent {

// Relaxed is enough: all cores are fibers of one thread.
constexpr auto kRelaxed = std::memory_order_relaxed;

Caches::Caches(int cores, std::span<shmem::SyncWord> lines, std::function<void(int)> stored)
    : lines_(lines), stored_(std::move(stored)), versions_(lines.size()), caches_(static_cast<std::size_t>(cores)) {}

void Caches::reset(std::uint64_t seed) {
  random_ = Random(seed);
  write_back_chance_ = std::array{0U, 16U, 256U}[random_.below(3)];
  eviction_chance_ = std::array{0U, 0U, 64U}[random_.below(3)];
  for (shmem::SyncWord& line : lines_) {
    line.value.store(0, kRelaxed);
  }
  std::ranges::fill(versions_, 0U);
  for (Cache& cache : caches_) {
    cache.entries.clear();
    cache.dirty.clear();
  }
}

int Caches::line_of(const void* address) const {
  return static_cast<int>((static_cast<const std::byte*>(address) - reinterpret_cast<const std::byte*>(lines_.data())) /
                          static_cast<std::ptrdiff_t>(sizeof(shmem::SyncWord)));
}

std::uint64_t Caches::load(int core, int line) {
  Cache& cache = caches_[static_cast<std::size_t>(core)];
  const auto [entry, missed] = cache.entries.try_emplace(line, Entry{0, false});
  if (missed || (!entry->second.dirty && random_.chance(eviction_chance_))) {
    entry->second.value = in_memory(line);
  }
  return entry->second.value;
}

void Caches::store(int core, int line, std::uint64_t value) {
  Cache& cache = caches_[static_cast<std::size_t>(core)];
  Entry& entry = cache.entries.try_emplace(line, Entry{0, false}).first->second;
  if (!std::exchange(entry.dirty, true)) {
    cache.dirty.push_back(line);
  }
  entry.value = value;
}

std::uint64_t Caches::fetch_add(int line, std::uint64_t value) {
  const std::uint64_t before = in_memory(line);
  set_memory(line, before + value);  // wakes no core
  return before;
}

void Caches::fence(int core) {
  Cache& cache = caches_[static_cast<std::size_t>(core)];
  while (!cache.dirty.empty()) {
    write_back(cache, random_.below(cache.dirty.size()));
  }
}

void Caches::dcci(int core, int line) {
  Cache& cache = caches_[static_cast<std::size_t>(core)];
  if (const auto found = std::ranges::find(cache.dirty, line); found != cache.dirty.end()) {
    write_back(cache, static_cast<std::size_t>(found - cache.dirty.begin()));
  }
  cache.entries.erase(line);
}

void Caches::dcci_all(int core) {
  fence(core);
  caches_[static_cast<std::size_t>(core)].entries.clear();
}

void Caches::drift(int core) {
  if (!random_.chance(write_back_chance_)) {
    return;
  }
  const std::size_t whose = random_.chance(512) ? static_cast<std::size_t>(core) : random_.below(caches_.size());
  if (Cache& cache = caches_[whose]; !cache.dirty.empty()) {
    write_back(cache, random_.below(cache.dirty.size()));
  }
}

void Caches::write_back(Cache& cache, std::size_t which) {
  const int line = std::exchange(cache.dirty[which], cache.dirty.back());
  cache.dirty.pop_back();
  Entry& entry = cache.entries.at(line);
  entry.dirty = false;
  set_memory(line, entry.value);
  stored_(line);
}

void Caches::set_memory(int line, std::uint64_t value) {
  word(line).store(value, kRelaxed);
  ++versions_[static_cast<std::size_t>(line)];
}

}  // namespace incoherent
