// SPDX-License-Identifier: Apache-2.0
// A team whose members run in turn on one thread, each until it waits, while the lines of shared memory that each of
// them reads and stores to are counted. The library's own code, compiled as accesses.hpp says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <unordered_map>
#include <vector>

#include "shmem/collective/members.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/growth/accesses.hpp"
#include "tests/unit/shmem/incoherent/fibers.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace growth {

/// The most of any member in one call.
struct Most {
  int stored = 0;   // lines
  int read = 0;     // lines that another member was the last one to store to
  int signals = 0;  // words that a sleeper may wait for, and counters

  bool operator==(const Most&) const = default;
  void include(const Most& other);
};
std::ostream& operator<<(std::ostream& out, const Most& most);

class CountedJob {
 public:
  /// What a member does in a call.
  using Call = std::function<void(int member)>;

  /// Slots of the board that its teams do not use.
  static constexpr int kOtherSlots = 8;

  explicit CountedJob(int members);
  ~CountedJob();
  CountedJob(const CountedJob&) = delete;
  CountedJob& operator=(const CountedJob&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(jobs_.size()); }
  [[nodiscard]] shmem::Job& job(int member) { return *jobs_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] shmem::LocalTeam& team(int member) { return *teams_[static_cast<std::size_t>(member)]; }

  /// `bytes` at `address` are new, stored by `member`.
  void renew(int member, const void* address, std::size_t bytes);
  /// All members make `call` so many times. The most of any member in any of them.
  Most count(int times, const Call& call);

 private:
  class Lines;
  class Switch;

  void run(int member);

  shmem_test::Rendezvous rendezvous_;
  std::vector<std::unique_ptr<shmem::Job>> jobs_;
  std::vector<std::unique_ptr<shmem::LocalTeam>> teams_;
  std::unique_ptr<Lines> lines_;
  std::unique_ptr<Switch> switch_;
  std::vector<bool> done_;
  const Call* call_ = nullptr;
  incoherent::Fibers fibers_;
};

}  // namespace growth
