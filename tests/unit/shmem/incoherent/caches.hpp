// SPDX-License-Identifier: Apache-2.0
// Memory, and a cache for each core that is not coherent with the others. Each call is one step; no call waits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shmem/cores/wait.hpp"
#include "tests/unit/shmem/incoherent/random.hpp"

namespace incoherent {

/// A line holds one word. Memory is SyncWord::value; each core sees it through a cache of its own:
/// - a loaded value stays in the cache until the core drops the line (or, with some seeds, it is evicted at any time);
/// - a stored value is in memory after dcci or fence; until then it may stay in the cache without end, or (with some
///   seeds) reach memory at any time, each line on its own, in any order.
class Caches {
 public:
  /// `lines` is all of the shared memory. `stored` is called with each line that is written back.
  Caches(int cores, std::span<shmem::SyncWord> lines, std::function<void(int line)> stored);

  /// Empties all caches and clears memory.
  void reset(std::uint64_t seed);

  std::uint64_t load(int core, int line);
  void store(int core, int line, std::uint64_t value);
  /// Acts on memory at once and bypasses the core's own cache.
  std::uint64_t fetch_add(int line, std::uint64_t value);
  void fence(int core);
  void dcci(int core, int line);
  void dcci_all(int core);
  /// Perhaps writes back a line that a core has stored to.
  void drift(int core);

  /// The line of an address in `lines`.
  [[nodiscard]] int line_of(const void* address) const;
  [[nodiscard]] std::uint64_t in_memory(int line) const { return word(line).load(std::memory_order_relaxed); }
  /// How often the line has changed in memory.
  [[nodiscard]] std::uint32_t version(int line) const { return versions_[static_cast<std::size_t>(line)]; }
  /// The lines that the core has stored to and not written back.
  [[nodiscard]] const std::vector<int>& unwritten(int core) const {
    return caches_[static_cast<std::size_t>(core)].dirty;
  }

 private:
  struct Entry {
    std::uint64_t value;
    bool dirty;
  };
  struct Cache {
    std::unordered_map<int, Entry> entries;
    std::vector<int> dirty;
  };

  [[nodiscard]] std::atomic<std::uint64_t>& word(int line) const {
    return lines_[static_cast<std::size_t>(line)].value;
  }
  void set_memory(int line, std::uint64_t value);
  void write_back(Cache& cache, std::size_t which);

  std::span<shmem::SyncWord> lines_;
  std::function<void(int)> stored_;
  std::vector<std::uint32_t> versions_;
  std::vector<Cache> caches_;
  Random random_;
  unsigned write_back_chance_ = 0;
  unsigned eviction_chance_ = 0;
};

}  // namespace incoherent
