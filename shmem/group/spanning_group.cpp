// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/spanning_group.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>

#include "shmem/layout/job.hpp"

namespace shmem {
namespace {

/// How long a member that ends waits for the others.
constexpr std::chrono::seconds kGoodbye{1};

NetworkSettings settings_of(const Whereabouts& where, const Options& options, int me, int size) {
  NetworkSettings settings{.segments = {}, .is_remote = {}, .names = {}};
  settings.policy = policy_on(where.nodes, static_cast<int>(where.nodes.here.size()), where.processors);
  settings.interrupts = Notices::interrupts;
  settings.rdma_only = options.network_require == NetworkUse::kRdma;
  for (int pe = 0; pe < size; ++pe) {
    settings.is_remote.push_back(pe != me);
    settings.names.push_back(fmt::format("PE {} (on {})", pe, where.nodes.host(pe)));
  }
  return settings;
}

}  // namespace

Result<std::unique_ptr<Group>> SpanningGroup::create(std::unique_ptr<StoreBootstrap> bootstrap,
                                                     const Whereabouts& where, const Options& options) {
  std::unique_ptr<SpanningGroup> group(  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
      new SpanningGroup(std::move(bootstrap), where.nodes.text()));
  if (auto ok = group->connect(where, options); !ok) {
    return group->failure_of(ok.error());
  }
  return std::unique_ptr<Group>(std::move(group));
}

Result<void> SpanningGroup::connect(const Whereabouts& where, const Options& options) {
  auto network = make_network(*bootstrap_, settings_of(where, options, bootstrap_->rank(), size()));
  if (!network) {
    return network.error();
  }
  network_ = *std::move(network);
  notices_ = std::make_unique<Notices>(*network_, bootstrap_->rank(), size());
  mail_ = std::make_unique<NetworkMail>(*network_, *notices_, bootstrap_->rank(), size());
  collectives_ = std::make_unique<MessageCollectives>(*network_, bootstrap_->rank(), size());
  // The first call connects each member with each: later on a closed connection means that a member has gone.
  return collectives_->run(StagedCall{}, options.bootstrap_timeout);
}

void SpanningGroup::say_goodbye() {
  if (failed_ || !collectives_) {
    return;
  }
  StagedCall goodbye;
  goodbye.leaves = true;
  if (!collectives_->run(goodbye, kGoodbye)) {
    // By name: those that hear of it hand it on.
    notices_->send(fail(std::errc::connection_reset, fmt::format("PE {} has left the group", bootstrap_->rank())));
  }
}

SpanningGroup::~SpanningGroup() {
  try {
    say_goodbye();
  } catch (const std::bad_alloc&) {
    // The others find out when this member closes its connections.
  }
  collectives_.reset();
  mail_.reset();
}

/// Before a collective call, with running_ held: other members may have begun it, and given it up since.
Result<void> SpanningGroup::begin() {
  if (failed_) {
    return *failed_;
  }
  // UCX tells of a closed connection some calls after it has found out.
  constexpr int kMost = 100;
  constexpr int kIdle = 3;
  for (int look = 0, idle = 0; look < kMost && idle < kIdle; ++look) {
    idle += network_->advance() ? 0 : 1;
  }
  if (notices_->has_come()) {
    return fail(std::errc::owner_dead, "shmem: a member has given the group up");
  }
  const auto lost = network_->lost();
  return lost ? Result<void>(*lost) : Result<void>();
}

/// The Error of a collective call, with running_ held.
Error SpanningGroup::failure_of(const Error& error) {
  // The same on all members: calls that differ. A member that has left says so in place of a call.
  const bool goes_on = error.code != std::errc::connection_reset && network_ && collectives_ &&
                       !collectives_->has_failed() && !network_->lost() && !notices_->has_come();
  if (failed_ || goes_on) {
    return in_ranks(error);
  }
  Error cause = error;
  if (network_) {
    cause = notices_->cause_of(error);
    notices_->send(cause);
  }
  end(std::make_shared<const Error>(in_ranks(cause)));
  return *failed_;
}

/// Needs no memory.
void SpanningGroup::end(const ErrorPointer& why) {
  failed_ = why;
  collectives_.reset();
  if (mail_) {
    mail_->stop(failed_);
  }
  notices_.reset();
  network_.reset();
}

/// The members do not know any more which calls this one has made.
void SpanningGroup::give_up_without_memory() {
  if (failed_) {
    return;
  }
  try {
    notices_->send(*no_memory_);
  } catch (const std::bad_alloc&) {
    // The others find out when this member closes its connections.
  }
  end(no_memory_);
}

Result<void> SpanningGroup::run_once(const StagedCall& call, std::chrono::nanoseconds timeout) {
  auto ok = begin();
  ok = ok ? collectives_->run(call, timeout) : std::move(ok);
  calls_ += ok ? 1 : 0;
  return ok ? ok : failure_of(ok.error());
}

Result<void> SpanningGroup::run(const StagedCall& call, std::chrono::nanoseconds timeout) {
  const std::scoped_lock lock(running_);
  try {
    return run_once(call, timeout);
  } catch (const std::exception&) {  // std::bad_alloc, or std::length_error of a size that no memory has
    give_up_without_memory();
    throw;
  }
}

Result<std::shared_ptr<MemberMemory>> SpanningGroup::allocate(std::size_t /*bytes*/,
                                                              std::chrono::nanoseconds /*timeout*/) {
  return in_ranks(fail(std::errc::not_supported,
                       fmt::format("shmem: PE {}: a group with members on several nodes has no symmetric memory: {}",
                                   bootstrap_->rank(), nodes_)));
}

Result<void> SpanningGroup::check(int /*rank*/) {
  const std::scoped_lock lock(running_);
  return failed_ ? Result<void>(*failed_) : Result<void>();
}

Result<std::string> SpanningGroup::missing() {
  return in_ranks(
      fail(std::errc::not_supported,
           fmt::format("shmem: PE {}: a group with members on several nodes does not know who has begun a call: {}",
                       bootstrap_->rank(), nodes_)));
}

Group::Statistics SpanningGroup::statistics() {
  const std::scoped_lock lock(running_);
  return {calls_, 0, 0, 0};
}

void SpanningGroup::post(const MessagePointer& message) {
  mail_->post(message);
}

Result<void> SpanningGroup::wait(const MessagePointer& message) {
  auto ok = mail_->wait(message);
  return ok ? ok : in_ranks(ok.error());
}

}  // namespace shmem
