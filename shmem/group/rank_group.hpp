// SPDX-License-Identifier: Apache-2.0
// A group of processes that a program forms itself: shmemx_group.h. It is a job of its own, without the library's
// Runtime, with one team.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "shmem/bootstrap/store_bootstrap.hpp"
#include "shmem/collective/staged.hpp"
#include "shmem/config/options.hpp"
#include "shmem/group/mail.hpp"
#include "shmem/group/network_mail.hpp"
#include "shmem/group/notices.hpp"
#include "shmem/memory/member_memory.hpp"
#include "shmem/net/network.hpp"
#include "shmem/runtime/barrier_selector.hpp"

namespace shmem {

/// Thread-safe, except that members make collective calls in the same order. Everything that belongs to it ends with
/// it; other members may go on using the memory that they share with it.
///
/// Between nodes all members are connected from the start. One that fails tells the others why. One that ends closes
/// its connections, which the others notice when they send to it.
class RankGroup {
 public:
  /// Collective. `options` are those of the environment.
  static Result<std::unique_ptr<RankGroup>> create(KeyValueStore store, int rank, int size, Options options);
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  /// The others notice, if they wait for this member. On several nodes it waits a moment for them, so that none loses
  /// what is still on its way.
  ~RankGroup();

  [[nodiscard]] int size() const { return job_->world_size(); }
  /// Collective. `timeout` 0: none. The Error of a member that died or did not come is that of all later calls.
  Result<void> run(const StagedCall& call, std::chrono::nanoseconds timeout);

  /// Collective: symmetric memory, of which calls use buffers where they are. It outlives the group. After a call has
  /// failed, other members may still write to buffers of that call. On several nodes each member shares it with those
  /// of its node.
  Result<std::shared_ptr<MemberMemory>> allocate(std::size_t bytes, std::chrono::nanoseconds timeout);
  /// The member's number in that memory; nothing: it is on another node.
  [[nodiscard]] std::optional<int> place_of(int rank) const;
  /// Not collective, any thread: an Error if the group has failed, or that member's process has ended.
  [[nodiscard]] Result<void> check(int rank);
  /// Not collective, any thread: all calls and messages of all members fail, those that run at once. The first member
  /// that gives the group up has its reason told.
  void abort(const std::string& reason);
  /// Not collective, any thread: the members that have not begun the collective call that this one is in, as text.
  /// On several nodes: those of this node.
  [[nodiscard]] std::string missing();
  struct Statistics {
    std::uint64_t calls = 0;  // collective ones without an Error
    std::uint64_t direct_calls = 0;
    std::uint64_t staged_bytes = 0;
    std::uint64_t direct_messages = 0;  // received
    std::uint64_t device_barriers = 0;
    std::uint64_t sent_bytes = 0;  // to other nodes
  };
  [[nodiscard]] Statistics statistics();

  /// A message that is over, or on its way.
  void post(const MessagePointer& message);
  Result<void> wait(const MessagePointer& message);

  /// The members of a group are ranks to those who make groups.
  [[nodiscard]] static Error in_ranks(Error error);

 private:
  /// What connects the nodes. The members refer to each other.
  struct Between {
    Between(std::unique_ptr<RemoteBoard> shown, std::unique_ptr<Network> connected, Mail& here, int me, int members);
    std::unique_ptr<RemoteBoard> board;  // what the network shows to other nodes
    std::unique_ptr<Network> network;    // none once the group has failed, as the next one
    std::unique_ptr<Notices> notices;
    NetworkMail mail;       // to members of other nodes; stays, stopped before the network goes
    std::jthread progress;  // if barriers go through the device
  };

  // The heap of each member: the word by which the group ends (that of the node's first member is used), the number of
  // collective calls that it has begun, then on several nodes a board, then mail, then stages.
  static constexpr std::size_t kBegunOffset = 2048;
  static_assert(sizeof(JobEndWord) <= kBegunOffset);
  static constexpr std::size_t kBoardOffset = 4096;
  struct Layout {
    std::size_t mail;
    Stages stages;
  };

  RankGroup(std::unique_ptr<Job> job, StoreBootstrap& store);
  static Layout layout_on(const Nodes& nodes, int members);
  Result<void> open(StoreBootstrap& steps, const Layout& layout);
  Result<void> choose_barriers(Bootstrap& steps);
  void make_team();
  [[nodiscard]] std::atomic<std::uint64_t>& begun(int member) const;
  [[nodiscard]] Result<void> begin(std::chrono::nanoseconds timeout);
  [[nodiscard]] Result<void> look_at_network();
  [[nodiscard]] bool goes_on_after(const Error& error);
  [[nodiscard]] Error cause_of(const Error& error);
  Error failure_of(const Error& error);
  [[nodiscard]] Error why_reset(const Error& error) const;
  [[nodiscard]] Result<void> was_given_up() const;
  /// Tells the members of this node. Needs no memory.
  void give_up(const Error& error);
  // Mail::Hooks.
  void lose(const Error& error);
  [[nodiscard]] std::optional<std::string> why_given_up();
  /// Ends what connects the nodes. Needs no memory.
  void disconnect(const ErrorPointer& why);
  void count();
  void fail_without_memory();
  void say_goodbye();

  std::unique_ptr<Job> job_;  // others keep references to it
  std::unique_ptr<Between> between_;
  BarrierSelector barriers_;
  std::unique_ptr<Team> team_;
  SymmetricMemories memories_;
  std::uint64_t allocations_ = 0;
  std::optional<StagedCollectives> collectives_;
  bool compares_device_barriers_ = false;  // barriers of the device follow an exchange, as other calls do
  std::mutex running_;
  Statistics counted_;            // under running_; all but the calls as of the last count()
  ErrorPointer failed_;           // under running_
  const ErrorPointer no_memory_;  // made beforehand
  std::mutex ending_;
  std::optional<Mail> mail_;  // between members of this node; last: it has a thread that uses the others
};

}  // namespace shmem
