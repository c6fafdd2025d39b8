// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/rank_group.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "shmem/layout/leave.hpp"
#include "shmem/layout/peers.hpp"

namespace shmem {
namespace {

/// How long a member that ends waits for those of other nodes.
constexpr std::chrono::seconds kGoodbye{1};

constexpr const char* kGivenUp = "shmem: a member has given the group up";

}  // namespace

void RankGroup::say_goodbye() {
  if (failed_ || !between_ || !collectives_) {
    return;
  }
  StagedCall goodbye;
  goodbye.leaves = true;
  job_->options.barrier_timeout = kGoodbye;
  collectives_->set_limit(kGoodbye);
  if (!collectives_->run(goodbye)) {
    // By name: those that hear of it hand it on.
    between_->notices->send(
        fail(std::errc::connection_reset, fmt::format("PE {} has left the group", job_->world_me())));
  }
}

RankGroup::~RankGroup() {
  try {
    say_goodbye();
  } catch (const std::bad_alloc&) {
    // The others find out when this member closes its connections.
  }
  if (mail_) {
    mail_->stop();
  }
  collectives_.reset();
  team_.reset();
  between_.reset();
  leave(*job_);  // last: what this member has done for the others before counts
}

void RankGroup::give_up(const Error& error) {
  const std::scoped_lock lock(ending_);
  job_->bootstrap->abort(EXIT_FAILURE, error.text);
}

/// The members of other nodes may wait for one of this node.
void RankGroup::lose(const Error& error) {
  try {
    const std::scoped_lock lock(ending_);
    if (between_ && between_->notices) {
      between_->notices->send(error);
    }
  } catch (const std::bad_alloc&) {
    // The others find out by themselves, or time out.
  }
  give_up(error);
}

std::optional<std::string> RankGroup::why_given_up() {
  if (auto why = job_->bootstrap->aborted()) {
    return why;
  }
  const std::scoped_lock lock(ending_);
  if (!between_ || !between_->network) {
    return std::nullopt;
  }
  between_->network->advance();
  return between_->notices->has_come()
             ? std::optional(between_->notices->cause_of(fail(std::errc::connection_reset, kGivenUp)).text)
             : std::nullopt;
}

std::atomic<std::uint64_t>& RankGroup::begun(int member) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(job_->memory.heap(member) + kBegunOffset);
}

/// Before a collective call, with running_ held.
Result<void> RankGroup::begin(std::chrono::nanoseconds timeout) {
  if (failed_) {
    return *failed_;
  }
  job_->options.barrier_timeout = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  collectives_->set_limit(timeout);
  // Relaxed: only for the text of messages. One thread at a time writes it.
  auto& mine = begun(job_->me);
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // Others may have given up this call: it could not be told from one that has come in time.
  if (between_) {
    if (auto ok = look_at_network(); !ok) {
      return ok;
    }
  }
  return job_->ended() == std::errc{} ? Result<void>() : was_given_up();
}

Result<void> RankGroup::look_at_network() {
  // UCX tells of a closed connection some calls after it has found out.
  constexpr int kMost = 100;
  constexpr int kIdle = 3;
  for (int look = 0, idle = 0; look < kMost && idle < kIdle; ++look) {
    idle += between_->network->advance() ? 0 : 1;
  }
  if (between_->notices->has_come()) {
    return fail(std::errc::owner_dead, kGivenUp);
  }
  const auto lost = between_->network->lost();
  return lost ? Result<void>(*lost) : Result<void>();
}

/// After an Error of arguments, the same on all members.
bool RankGroup::goes_on_after(const Error& error) {
  if (error.code == std::errc::connection_reset || !collectives_ || collectives_->has_failed() ||
      job_->ended() != std::errc{}) {
    return false;
  }
  return !between_ || (!between_->network->lost() && !between_->notices->has_come());
}

/// When several members fail one after the other, the Error of the first.
Error RankGroup::cause_of(const Error& error) {
  constexpr std::chrono::milliseconds kNoticeLimit{500};
  const bool by_leader = error.code == std::errc::host_unreachable;
  if (!by_leader && error.code != std::errc::operation_canceled && job_->ended() == std::errc{}) {
    return between_->notices->cause_of(error);
  }
  // Another member of this node has failed, and is about to send a notice.
  const auto end = Clock::now() + kNoticeLimit;
  while (!between_->notices->has_come() && Clock::now() < end) {
    between_->network->sleep(std::chrono::milliseconds{1});
    between_->network->advance();
  }
  return between_->notices->cause_of({std::errc::connection_reset, error.text});
}

/// The Error of a collective call, with running_ held.
Error RankGroup::failure_of(const Error& error) {
  if (failed_ || goes_on_after(error)) {
    return in_ranks(error);
  }
  const Error cause = between_ ? cause_of(error) : error;
  if (between_) {
    between_->notices->send(cause);
  }
  failed_ = std::make_shared<const Error>(in_ranks(cause));
  give_up(*failed_);
  disconnect(failed_);
  return *failed_;
}

void RankGroup::disconnect(const ErrorPointer& why) {
  if (!between_) {
    return;
  }
  if (collectives_) {
    count();
  }
  collectives_.reset();
  team_.reset();
  between_->mail.stop(why);
  between_->progress = {};
  const std::scoped_lock lock(ending_);
  job_->policy.background = nullptr;
  job_->network = nullptr;
  between_->notices.reset();
  between_->network.reset();
}

/// The members do not know any more which calls this one has made.
void RankGroup::fail_without_memory() {
  if (failed_) {
    return;
  }
  failed_ = no_memory_;
  try {
    if (between_) {
      between_->notices->send(*no_memory_);
    }
  } catch (const std::bad_alloc&) {
    // The others find out when this member closes its connections.
  }
  give_up(*no_memory_);
  disconnect(no_memory_);
}

Result<void> RankGroup::run(const StagedCall& call, std::chrono::nanoseconds timeout) {
  const std::scoped_lock lock(running_);
  try {
    auto ok = begin(timeout);
    ok = ok ? collectives_->run(call) : std::move(ok);
    if (ok && compares_device_barriers_ && call.kind == StagedCall::kBarrier) {
      ok = team_->sync();
    }
    counted_.calls += ok ? 1 : 0;
    return ok ? ok : failure_of(ok.error());
  } catch (const std::exception&) {  // std::bad_alloc, or std::length_error of a size that no memory has
    fail_without_memory();
    throw;
  }
}

std::optional<int> RankGroup::place_of(int rank) const {
  const int place = job_->nodes.number(rank);
  return place >= 0 ? std::optional(place) : std::nullopt;
}

Result<void> RankGroup::check(int rank) {
  if (job_->ended() != std::errc{}) {
    return in_ranks(was_given_up().error());
  }
  const auto place = place_of(rank);
  if (!place) {
    const std::scoped_lock lock(ending_);
    const bool lost = between_->network && (between_->network->has_lost(rank) || between_->notices->has_come(rank));
    return lost ? in_ranks({std::errc::connection_reset,
                            fmt::format("shmem: PE {}: the group has lost PE {} (on {}); end it, and make a new one of "
                                        "the PEs that are left",
                                        job_->world_me(), rank, job_->nodes.host(rank))})
                : Result<void>();
  }
  if (rank == job_->world_me() || !is_dead_or_zombie(*job_, *place)) {
    return {};
  }
  return in_ranks(
      {std::errc::owner_dead,
       fmt::format("shmem: PE {}: the group has lost {}; end it, and make a new one of the PEs that are left",
                   job_->world_me(), describe_pe(*job_, *place))});
}

void RankGroup::abort(const std::string& reason) {
  const std::string text = fmt::format("PE {} has aborted it: {}", job_->world_me(), reason);
  lose({std::errc::operation_canceled, text});
  if (between_) {
    between_->mail.fail_all(std::make_shared<const Error>(
        fail(std::errc::operation_canceled,
             fmt::format("shmem: PE {}: a message was given up: {}", job_->world_me(), text))));
  }
}

std::string RankGroup::missing() {
  const std::uint64_t mine = begun(job_->me).load(std::memory_order_relaxed);
  std::string text;
  for (int member = 0; member < job_->size; ++member) {
    if (begun(member).load(std::memory_order_relaxed) < mine) {
      text += (text.empty() ? "" : ", ") + describe_pe(*job_, member);
    }
  }
  if (text.empty() && between_) {
    return "ranks on other nodes, if any";
  }
  return in_ranks({std::errc{}, text}).text;
}

/// With running_ held, and before what counts is gone.
void RankGroup::count() {
  const StagedStatistics moved = collectives_->statistics();
  counted_.direct_calls = moved.direct_calls;
  counted_.staged_bytes = moved.staged_bytes;
  counted_.device_barriers = team_->stats().by_device;
  counted_.sent_bytes = between_ ? between_->network->sent_bytes() : 0;
}

RankGroup::Statistics RankGroup::statistics() {
  const std::scoped_lock lock(running_);
  if (collectives_) {
    count();
  }
  counted_.direct_messages = mail_->direct_messages();
  return counted_;
}

Result<void> RankGroup::was_given_up() const {
  return fail(std::errc::operation_canceled, fmt::format("shmem: PE {}: the group was given up: {}", job_->me,
                                                         job_->bootstrap->aborted().value_or("no reason is known")));
}

void RankGroup::post(const MessagePointer& message) {
  if (between_ && (message->peer < 0 || !place_of(message->peer))) {
    between_->mail.post(message);
  } else {
    mail_->post(message);
  }
}

Result<void> RankGroup::wait(const MessagePointer& message) {
  auto ok = message->by_network ? between_->mail.wait(message) : mail_->wait(message);
  return ok ? ok : in_ranks(ok.error());
}

Error RankGroup::in_ranks(Error error) {
  // The timeout is an argument of each call.
  constexpr std::string_view kVariable = " (SHMEM_BARRIER_TIMEOUT)";
  if (const auto at = error.text.find(kVariable); at != std::string::npos) {
    error.text.erase(at, kVariable.size());
  }
  for (std::size_t at = 0; (at = error.text.find("PE", at)) != std::string::npos;) {
    const bool several = error.text.compare(at, 3, "PEs") == 0;
    error.text.replace(at, several ? 3 : 2, several ? "ranks" : "rank");
    at += several ? 5 : 4;
  }
  return error;
}

}  // namespace shmem
