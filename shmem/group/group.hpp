// SPDX-License-Identifier: Apache-2.0
// A group of processes that a program forms itself: shmemx_group.h. It is a job of its own, without the library's
// Runtime, with one team.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "shmem/bootstrap/store_bootstrap.hpp"
#include "shmem/collective/staged.hpp"
#include "shmem/group/mail.hpp"
#include "shmem/runtime/barrier_selector.hpp"
#include "shmem/team/local_team.hpp"

namespace shmem {

/// Thread-safe, except that members make collective calls in the same order. Everything that belongs to it ends with
/// it; other members may go on using the memory that they share with it.
class Group {
 public:
  /// Collective. `options` are those of the environment.
  static Result<std::unique_ptr<Group>> create(KeyValueStore store, int rank, int size, Options options);

  [[nodiscard]] int rank() const { return job_->me; }
  [[nodiscard]] int size() const { return job_->size; }
  /// Collective. `timeout` 0: none. The Error of a member that died or did not come is that of all later calls.
  Result<void> run(const StagedCall& call, std::chrono::nanoseconds timeout);

  /// Collective: symmetric memory, of which calls use buffers where they are. It outlives the group. After a call has
  /// failed, other members may still write to buffers of that call.
  Result<std::shared_ptr<MemberMemory>> allocate(std::size_t bytes, std::chrono::nanoseconds timeout);
  struct Statistics {
    std::uint64_t calls;  // collective ones without an Error
    StagedStatistics moved;
    std::uint64_t direct_messages;  // received
  };
  [[nodiscard]] Statistics statistics();

  /// A message that is over, or on its way.
  void post(const MessagePointer& message);
  Result<void> wait(const MessagePointer& message);

 private:
  Group(std::unique_ptr<Job> job, StoreBootstrap& bootstrap);
  Result<void> choose_barriers(Bootstrap& steps);
  [[nodiscard]] Result<void> begin(std::chrono::nanoseconds timeout);
  Error failure_of(const Error& error);
  [[nodiscard]] Result<void> was_given_up() const;
  /// Tells all members.
  void give_up(const Error& error);
  [[nodiscard]] static Error in_ranks(Error error);

  std::unique_ptr<Job> job_;  // others keep references to it
  BarrierSelector barriers_;
  LocalTeam team_;
  SymmetricMemories memories_;
  std::uint64_t allocations_ = 0;
  StagedCollectives collectives_;
  std::uint64_t calls_ = 0;  // under running_
  std::mutex running_;
  std::optional<Error> failed_;  // under running_
  std::mutex ending_;
  Mail mail_;  // last: it has a thread that uses the others
};

}  // namespace shmem
