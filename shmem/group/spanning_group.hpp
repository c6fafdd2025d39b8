// SPDX-License-Identifier: Apache-2.0
// A group with members on several nodes: all calls are messages between members, also of those on one node.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "shmem/collective/message_collectives.hpp"
#include "shmem/group/group.hpp"
#include "shmem/group/network_mail.hpp"
#include "shmem/group/notices.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

/// All members are connected from the start. One that fails tells the others why. One that ends closes its connections,
/// which the others notice when they send to it.
class SpanningGroup final : public Group {
 public:
  /// Collective. `where`: members are on several nodes.
  static Result<std::unique_ptr<Group>> create(std::unique_ptr<StoreBootstrap> bootstrap, const Whereabouts& where,
                                               const Options& options);
  /// Waits a moment for the other members, so that none loses what is still on its way, and then tells them.
  ~SpanningGroup() override;

  [[nodiscard]] int size() const override { return bootstrap_->size(); }
  Result<void> run(const StagedCall& call, std::chrono::nanoseconds timeout) override;
  /// There is none: not_supported.
  Result<std::shared_ptr<MemberMemory>> allocate(std::size_t bytes, std::chrono::nanoseconds timeout) override;
  [[nodiscard]] Result<void> check(int rank) override;
  /// Not known: not_supported.
  [[nodiscard]] Result<std::string> missing() override;
  [[nodiscard]] Statistics statistics() override;
  void post(const MessagePointer& message) override;
  Result<void> wait(const MessagePointer& message) override;

 private:
  SpanningGroup(std::unique_ptr<StoreBootstrap> bootstrap, std::string nodes)
      : bootstrap_(std::move(bootstrap)),
        nodes_(std::move(nodes)),
        no_memory_(no_memory_for_call(bootstrap_->rank())) {}
  Result<void> connect(const Whereabouts& where, const Options& options);
  [[nodiscard]] Result<void> begin();
  Result<void> run_once(const StagedCall& call, std::chrono::nanoseconds timeout);
  Error failure_of(const Error& error);
  void end(const ErrorPointer& why);
  void say_goodbye();
  void give_up_without_memory();

  const std::unique_ptr<StoreBootstrap> bootstrap_;
  const std::string nodes_;  // "PEs 0, 1 are on kiwi, PE 2 is on lemon"
  std::mutex running_;
  std::unique_ptr<Network> network_;  // none once the group has failed; as the next one
  std::unique_ptr<Notices> notices_;
  std::unique_ptr<MessageCollectives> collectives_;
  std::unique_ptr<NetworkMail> mail_;  // stays; stopped before the network goes
  std::uint64_t calls_ = 0;
  ErrorPointer failed_;
  const ErrorPointer no_memory_;  // made beforehand
};

}  // namespace shmem
