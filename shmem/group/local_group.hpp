// SPDX-License-Identifier: Apache-2.0
// A group whose members are all on one node: a job of its own, without the library's Runtime, with one team.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "shmem/bootstrap/store_bootstrap.hpp"
#include "shmem/collective/staged.hpp"
#include "shmem/group/group.hpp"
#include "shmem/group/mail.hpp"
#include "shmem/runtime/barrier_selector.hpp"
#include "shmem/team/local_team.hpp"

namespace shmem {

class LocalGroup final : public Group {
 public:
  /// Collective. `where`: all members are on one node.
  static Result<std::unique_ptr<Group>> create(std::unique_ptr<StoreBootstrap> bootstrap, const Whereabouts& where,
                                               Options options);

  /// The others notice, if they wait for this member.
  ~LocalGroup() override;

  [[nodiscard]] int size() const override { return job_->size; }
  Result<void> run(const StagedCall& call, std::chrono::nanoseconds timeout) override;
  Result<std::shared_ptr<MemberMemory>> allocate(std::size_t bytes, std::chrono::nanoseconds timeout) override;
  [[nodiscard]] Result<void> check(int rank) override;
  [[nodiscard]] Result<std::string> missing() override;
  [[nodiscard]] Statistics statistics() override;
  void post(const MessagePointer& message) override;
  Result<void> wait(const MessagePointer& message) override;

 private:
  LocalGroup(std::unique_ptr<Job> job, StoreBootstrap& bootstrap);
  Result<void> choose_barriers(Bootstrap& steps);
  [[nodiscard]] std::atomic<std::uint64_t>& begun(int member) const;
  [[nodiscard]] Result<void> begin(std::chrono::nanoseconds timeout);
  Result<void> run_once(const StagedCall& call, std::chrono::nanoseconds timeout);
  Result<std::shared_ptr<MemberMemory>> allocate_once(std::size_t bytes, std::chrono::nanoseconds timeout);
  Error failure_of(const Error& error);
  [[nodiscard]] Error why_reset(const Error& error) const;
  [[nodiscard]] Result<void> was_given_up() const;
  /// Tells all members. Needs no memory.
  void give_up(const Error& error);
  template <typename Call>
  auto with_memory(Call call);

  std::unique_ptr<Job> job_;  // others keep references to it
  BarrierSelector barriers_;
  LocalTeam team_;
  SymmetricMemories memories_;
  std::uint64_t allocations_ = 0;
  StagedCollectives collectives_;
  bool compares_device_barriers_ = false;  // barriers of the device follow an exchange, as other calls do
  std::uint64_t calls_ = 0;                // under running_
  std::mutex running_;
  ErrorPointer failed_;           // under running_
  const ErrorPointer no_memory_;  // made beforehand
  std::mutex ending_;
  Mail mail_;  // last: it has a thread that uses the others
};

}  // namespace shmem
