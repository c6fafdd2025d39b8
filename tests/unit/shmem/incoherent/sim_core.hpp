// SPDX-License-Identifier: Apache-2.0
// A core of the simulated machine, for templates over Core.
#pragma once

#include "shmem/cores/core.hpp"
#include "tests/unit/shmem/incoherent/machine.hpp"

namespace incoherent {

/// The counterpart of Waiting on the simulated machine.
class SimWaiting {
 public:
  explicit SimWaiting(Machine& machine) : machine_(machine) {}
  std::errc pause(shmem::SyncWord& word, std::uint64_t /*seen*/) { return machine_.pause(word, last_version_); }

 private:
  Machine& machine_;
  std::optional<std::uint32_t> last_version_;
};

class SimCore {
 public:
  /// `number` counts the cores of all PEs.
  SimCore(Machine& machine, int number)
      : machine_(machine), index_(machine.index_of(number)), count_(machine.count_of(number)) {}

  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] int count() const { return count_; }
  std::uint64_t load(const shmem::SyncWord& word) { return machine_.load(word); }
  void store(shmem::SyncWord& word, std::uint64_t value) { machine_.store(word, value); }
  std::uint64_t fetch_add(shmem::SyncWord& word, std::uint64_t value) { return machine_.fetch_add(word, value); }
  SimWaiting begin_wait() { return SimWaiting(machine_); }
  void fence(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    machine_.fence({"fence", file, line});
  }
  void dcci(const void* address, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    machine_.dcci(address, {"dcci", file, line});
  }
  void dcci_all(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    machine_.dcci_all({"dcci_all", file, line});
  }
  std::errc sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return machine_.sync({"sync", file, line});
  }

 private:
  Machine& machine_;
  int index_;
  int count_;
};

static_assert(shmem::Core<SimCore>);

}  // namespace incoherent
