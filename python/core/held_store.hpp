// SPDX-License-Identifier: Apache-2.0
// What shmem_kv.Store keeps if the blocks are in the holder of its exchange: nothing but counters.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <shmemx_exchange.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "python/core/buffers.hpp"
#include "python/core/exchange.hpp"

namespace shmem_kv {

/// The calls of Store. Thread-safe.
class HeldStore {
 public:
  HeldStore(std::shared_ptr<Exchange> exchange, const std::string& tenant, std::uint32_t answer_ms);

  /// Returns the statuses; a block that the holder has already has 0.
  py::array put(const py::tuple& keys, const Buffers& sources, std::uint64_t layout);
  /// All have the status -ENOENT: blocks of the holder are pulled like those of any other member.
  py::array get(const py::tuple& keys, const Buffers& destinations, std::uint64_t layout);
  void note_others(std::uint64_t arrived, std::uint64_t missed);

  [[nodiscard]] bool holds(const py::bytes& key, std::uint64_t layout);
  [[nodiscard]] bool storing(const py::bytes& key);
  py::array contains(const py::tuple& keys, std::uint64_t layout);
  void touch(const py::tuple& keys);
  /// Evicts blocks of the layouts that were put or got here.
  py::array discard(const py::tuple& keys);
  void clear();
  py::tuple stats();

 private:
  class Storing;
  /// Which of them some member has: they then count as used.
  py::array_t<bool> find(const Keys& keys, std::uint64_t layout);

  const std::shared_ptr<Exchange> exchange_;
  std::mutex mutex_;                    // for the rest
  std::multiset<std::string> storing_;  // keys that put() copies
  std::set<std::uint64_t> layouts_;
  std::uint64_t stored_ = 0;
  std::uint64_t remote_ = 0;
  std::uint64_t missed_ = 0;
};

void bind_held_store(py::module_& module);

}  // namespace shmem_kv
