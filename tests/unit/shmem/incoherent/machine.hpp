// SPDX-License-Identifier: Apache-2.0
// Simulated PEs with simulated cores on incoherent memory: every operation of a core is a step at which others may run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "tests/unit/shmem/incoherent/caches.hpp"
#include "tests/unit/shmem/incoherent/scheduler.hpp"
#include "tests/unit/shmem/incoherent/sites.hpp"

namespace incoherent {

/// Cores are numbered across all PEs, those of PE 0 first. After fail(), waits end with operation_canceled.
class Machine {
 public:
  /// The name of a line in messages.
  using Name = std::function<std::string(int line)>;

  /// `cores_of[i]`: how many cores PE i has. `lines` outlives the machine.
  Machine(std::span<const int> cores_of, std::span<shmem::SyncWord> lines, Name name);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Runs `body` on every core. Returns the first fail() or a hang, if any.
  std::optional<std::string> run(std::uint64_t seed, Sites& sites, const Scheduler::Body& body);
  /// Ends the run. Only the first call counts.
  void fail(std::string why);
  [[nodiscard]] bool failed() const { return failure_.has_value(); }

  [[nodiscard]] int pe_of(int core) const { return pe_of_[static_cast<std::size_t>(core)]; }
  [[nodiscard]] int index_of(int core) const { return core - pes_[static_cast<std::size_t>(pe_of(core))].first_core; }
  [[nodiscard]] int count_of(int core) const { return pes_[static_cast<std::size_t>(pe_of(core))].cores; }

  [[nodiscard]] int line_of(const void* address) const { return caches_.line_of(address); }

  // The steps; called by the running core.
  std::uint64_t load(const shmem::SyncWord& word);
  void store(const shmem::SyncWord& word, std::uint64_t value);
  std::uint64_t fetch_add(const shmem::SyncWord& word, std::uint64_t value);
  void fence(const Site& site);
  void dcci(const void* address, const Site& site);
  void dcci_all(const Site& site);
  std::errc sync(const Site& site);
  /// Returns at once if the line has changed in memory since the last pause of the same wait, `last_version`. Otherwise
  /// waits until a store to it reaches memory; it may also return for no reason.
  std::errc pause(const shmem::SyncWord& word, std::optional<std::uint32_t>& last_version);

 private:
  struct Pe {
    int first_core = 0;
    int cores = 0;
    std::vector<int> met;  // cores that wait in sync()
  };

  void step();
  [[nodiscard]] std::errc outcome() const;
  void wake_waiters(int line);
  void report_hang();
  [[nodiscard]] std::string why_blocked(int core) const;

  std::vector<Pe> pes_;
  std::vector<int> pe_of_;
  std::vector<std::vector<int>> waiters_;  // by line
  std::vector<int> waits_for_;             // by core: a line, or kMeeting
  static constexpr int kMeeting = -1;
  Name name_;
  Random random_;
  Sites* sites_ = nullptr;
  std::optional<std::string> failure_;
  Caches caches_;
  Scheduler scheduler_;
};

}  // namespace incoherent
