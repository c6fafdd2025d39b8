// SPDX-License-Identifier: Apache-2.0
// What shmem_kv.Store keeps: the blocks of a region, which are published, in the order of their use. It is in C++ so
// that no exception of Python, of a signal handler for instance, comes between publishing a block and noting it.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <shmemx_exchange.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "python/core/buffers.hpp"
#include "python/core/exchange.hpp"
#include "python/core/room.hpp"

namespace shmem_kv {

/// Thread-safe. The memory of the region outlives calls.
class Store {
 public:
  Store(std::shared_ptr<Exchange> exchange, std::uint32_t region, std::uintptr_t address, std::uint64_t bytes,
        std::size_t most_blocks);

  /// Copies and publishes blocks. Returns the statuses: those of the exchange, -ENOSPC or -EBUSY. Waits for other
  /// threads that store one of the blocks.
  py::array put(const py::tuple& keys, const Buffers& sources, std::uint64_t layout);
  /// Copies the blocks that are here. The others have the status -ENOENT, or -EMSGSIZE: one of another size is here.
  py::array get(const py::tuple& keys, const Buffers& destinations, std::uint64_t layout);
  /// Counts blocks that get() has not found here.
  void note_others(std::uint64_t arrived, std::uint64_t missed);

  [[nodiscard]] bool holds(const py::bytes& key, std::uint64_t layout);
  [[nodiscard]] bool storing(const py::bytes& key);
  /// holds() of each.
  py::array contains(const py::tuple& keys, std::uint64_t layout);
  void touch(const py::tuple& keys);
  /// Returns which of them were here.
  py::array discard(const py::tuple& keys);
  void clear();
  /// blocks, bytes, capacity, stored, evicted, local hits, remote hits, misses
  py::tuple stats();

 private:
  struct Entry;
  using EntryPointer = std::shared_ptr<Entry>;
  using Order = std::list<Entry*>;
  enum class State {
    kStoring,  // a put copies or publishes it
    kReady,
    kLeaving,  // withdrawn, but leased by readers
    kOver      // no longer of this store
  };
  struct Entry {
    std::string key;
    Room::Part part;
    std::uint64_t bytes = 0;
    std::uint64_t layout = 0;
    State state = State::kStoring;
    std::int32_t status = 0;  // of its put
    unsigned readers = 0;     // threads of this process that copy it
    Order::iterator place{};  // in used_ or leaving_
  };
  class Put;
  class Reading;

  // REQUIRES: mutex_.
  Entry* find(const std::string& key) const;
  Entry* held(const std::string& key, std::uint64_t layout);
  bool make_room(shmemx_exchange_t* exchange, std::uint64_t bytes, bool& retried, Room::Part& part);
  bool evict(shmemx_exchange_t* exchange, Entry& entry);
  bool evict_one(shmemx_exchange_t* exchange);
  bool end_leaving(shmemx_exchange_t* exchange, Entry& entry);
  void retry_leaving(shmemx_exchange_t* exchange);
  void remove(Entry& entry);

  const std::shared_ptr<Exchange> exchange_;
  const std::uint32_t region_;
  const std::uintptr_t address_;
  const std::uint64_t capacity_;
  const std::size_t most_blocks_;
  std::mutex mutex_;                 // for the rest; no thread waits for the interpreter's lock with it
  std::condition_variable settled_;  // a put has ended
  Room room_;
  std::unordered_map<std::string, EntryPointer> entries_;
  Order used_;  // those that are not leaving, the least recently used first
  Order leaving_;
  std::uint64_t bytes_ = 0;  // of used_
  std::uint64_t stored_ = 0;
  std::uint64_t evicted_ = 0;
  std::uint64_t local_ = 0;
  std::uint64_t remote_ = 0;
  std::uint64_t missed_ = 0;
};

void bind_store(py::module_& module);

}  // namespace shmem_kv
