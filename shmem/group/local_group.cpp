// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/local_group.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>

#include "shmem/layout/leave.hpp"
#include "shmem/layout/peers.hpp"

namespace shmem {
namespace {

// The heap of each member: the word by which the group ends (member 0's is used), the number of collective calls that
// it has begun, then mail, then stages.
constexpr std::size_t kBegunOffset = 2048;
static_assert(sizeof(JobEndWord) <= kBegunOffset);
constexpr std::size_t kMailOffset = 4096;
/// The steps by which members set something up, as collective calls of the group: its store may be gone.
class CollectiveSteps final : public Bootstrap {
 public:
  CollectiveSteps(const Job& job, StagedCollectives& collectives) : job_(job), collectives_(collectives) {}

  [[nodiscard]] int rank() const override { return job_.me; }
  [[nodiscard]] int size() const override { return job_.size; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(job_.size));
    std::vector<void*> to;
    for (std::size_t at = 0; at < static_cast<std::size_t>(job_.size); ++at) {
      to.push_back(all.data() + at * mine.size());
    }
    const void* const from = mine.data();
    StagedCall call;
    call.kind = StagedCall::kAllgather;
    call.bytes = mine.size();
    call.from = &from;
    call.to = to.data();
    auto ok = collectives_.run(call);
    return ok ? Result<std::vector<std::byte>>(std::move(all)) : ok.error();
  }
  int abort(int status, const std::string& reason) override { return job_.bootstrap->abort(status, reason); }
  /// Also once a member has died: between two steps nothing else would notice.
  [[nodiscard]] std::optional<std::string> aborted() const override {
    for (int member = 0; member < job_.size; ++member) {
      if (member != job_.me && is_dead_or_zombie(job_, member)) {
        return fmt::format("shmem: PE {}: a collective call waited for {}", job_.me, describe_pe(job_, member));
      }
    }
    return job_.bootstrap->aborted();
  }
  void leave() override {}

 private:
  const Job& job_;
  StagedCollectives& collectives_;
};

/// A half of a stage. Two halves and the data of the program fit into the cache of one processor.
constexpr std::size_t kHalf = std::size_t{512} << 10;
std::size_t stages_offset(int members) {
  constexpr std::size_t kPage = 4096;
  return (kMailOffset + Mail::size_for(members) + kPage - 1) / kPage * kPage;
}

JobEndWord& end_word(const Job& job) {
  return *reinterpret_cast<JobEndWord*>(job.memory.heap(0));
}

std::unique_ptr<Job> make_job(std::unique_ptr<StoreBootstrap> bootstrap, Options options, NodeMemory memory,
                              const Whereabouts& where) {
  const int me = bootstrap->rank();
  const int size = bootstrap->size();
  const WaitPolicy policy = policy_on(where.nodes, size, where.processors);
  return std::make_unique<Job>(Job{.options = std::move(options),
                                   .bootstrap = std::move(bootstrap),
                                   .memory = std::move(memory),
                                   .me = me,
                                   .size = size,
                                   .policy = policy,
                                   .processors = where.processors});
}

}  // namespace

Result<std::unique_ptr<Group>> LocalGroup::create(std::unique_ptr<StoreBootstrap> bootstrap, const Whereabouts& where,
                                                  Options options) {
  const int size = bootstrap->size();
  auto memory =
      NodeMemory::create(*bootstrap, stages_offset(size) + 2 * kHalf, 0, options.placement, options.bootstrap_timeout);
  if (!memory) {
    return in_ranks(memory.error());
  }
  options.barrier_warning = std::chrono::milliseconds{0};  // a program's waits may be long, and have their own limits
  if (options.barrier_tuning.empty()) {
    options.barrier_tuning = kBuiltIn;  // programs make many groups: none measures barriers
  }
  join_store_barriers();
  StoreBootstrap& steps = *bootstrap;
  auto job = make_job(std::move(bootstrap), std::move(options), *std::move(memory), where);
  job->watch_sharing();
  introduce(*job);
  std::unique_ptr<LocalGroup> group(new LocalGroup(std::move(job), steps));  // NOLINT(cppcoreguidelines-owning-memory)
  if (auto ok = group->choose_barriers(steps); !ok) {
    return in_ranks(ok.error());
  }
  return std::unique_ptr<Group>(std::move(group));
}

LocalGroup::LocalGroup(std::unique_ptr<Job> job, StoreBootstrap& bootstrap)
    : job_(std::move(job)),
      barriers_(*job_),
      team_(*job_, TeamMap{0, 1, job_->size}, 0, 0),
      collectives_(*job_, team_, {stages_offset(job_->size), kHalf}, memories_),
      no_memory_(no_memory_for_call(job_->me)),
      mail_(*job_, kMailOffset, memories_, [this](const Error& error) { give_up(error); }) {
  bootstrap.tell_end_in(end_word(*job_));
  job_->policy.alarm = bootstrap.alarm();
}

LocalGroup::~LocalGroup() {
  mail_.stop();
  leave(*job_);  // last: what this member has done for the others before counts
}

Result<void> LocalGroup::choose_barriers(Bootstrap& steps) {
  if (auto ok = barriers_.load_tables(); !ok) {
    return ok;
  }
  barriers_.open_port();
  if (auto ok = steps.barrier(); !ok) {
    return ok;
  }
  if (auto ok = barriers_.settle_ports(); !ok) {
    return ok;
  }
  job_->options.barrier_timeout = job_->options.bootstrap_timeout;
  if (auto ok = barriers_.equip(team_); !ok) {
    return ok;
  }
  // All members have got a group of the device, or none.
  if (std::string_view(team_.algorithm()) == "gba") {
    if (job_->options.debug) {
      compares_device_barriers_ = true;
    } else {
      collectives_.leave_barriers_to_team();
    }
  }
  return {};
}

void LocalGroup::give_up(const Error& error) {
  const std::scoped_lock lock(ending_);
  job_->bootstrap->abort(EXIT_FAILURE, error.text);
}

std::atomic<std::uint64_t>& LocalGroup::begun(int member) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(job_->memory.heap(member) + kBegunOffset);
}

/// Before a collective call, with running_ held.
Result<void> LocalGroup::begin(std::chrono::nanoseconds timeout) {
  if (failed_) {
    return *failed_;
  }
  job_->options.barrier_timeout = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  // Relaxed: only for the text of messages. One thread at a time writes it.
  auto& mine = begun(job_->me);
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // Others may have given up this call: it could not be told from one that has come in time.
  return job_->ended() == std::errc{} ? Result<void>() : was_given_up();
}

/// The Error of a collective call, with running_ held.
Error LocalGroup::failure_of(const Error& error) {
  Error told = in_ranks(error);
  if (!failed_ && (collectives_.has_failed() || job_->ended() != std::errc{})) {
    failed_ = std::make_shared<const Error>(told);
    give_up(told);
  }
  return told;
}

/// Makes a collective call. Without memory for it, the members do not know any more which calls this one has made.
template <typename Call>
auto LocalGroup::with_memory(Call call) {
  const std::scoped_lock lock(running_);
  try {
    return call();
  } catch (const std::exception&) {  // std::bad_alloc, or std::length_error of a size that no memory has
    if (!failed_) {
      failed_ = no_memory_;
      give_up(*no_memory_);
    }
    throw;
  }
}

Result<void> LocalGroup::run(const StagedCall& call, std::chrono::nanoseconds timeout) {
  return with_memory([&] { return run_once(call, timeout); });
}

Result<void> LocalGroup::run_once(const StagedCall& call, std::chrono::nanoseconds timeout) {
  auto ok = begin(timeout);
  ok = ok ? collectives_.run(call) : std::move(ok);
  if (ok && compares_device_barriers_ && call.kind == StagedCall::kBarrier) {
    ok = team_.sync();
  }
  calls_ += ok ? 1 : 0;
  return ok ? ok : failure_of(ok.error());
}

/// The connection of a process that is killed ends, or is refused, a little before the process counts as dead.
Error LocalGroup::why_reset(const Error& error) const {
  constexpr std::chrono::seconds kLimit{1};
  if (error.code != std::errc::connection_reset && error.code != std::errc::connection_refused &&
      error.code != std::errc::broken_pipe) {
    return error;
  }
  const auto end = Clock::now() + kLimit;
  do {
    for (int member = 0; member < job_->size; ++member) {
      if (member != job_->me && is_dead_or_zombie(*job_, member)) {
        return {std::errc::owner_dead, fmt::format("shmem: PE {}: symmetric memory could not be shared with {}",
                                                   job_->me, describe_pe(*job_, member))};
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < end);
  return error;
}

Result<std::shared_ptr<MemberMemory>> LocalGroup::allocate(std::size_t bytes, std::chrono::nanoseconds timeout) {
  return with_memory([&] { return allocate_once(bytes, timeout); });
}

Result<std::shared_ptr<MemberMemory>> LocalGroup::allocate_once(std::size_t bytes, std::chrono::nanoseconds timeout) {
  if (auto ok = begin(timeout); !ok) {
    return failure_of(ok.error());
  }
  memories_.drop_unused();
  CollectiveSteps steps(*job_, collectives_);
  const auto limit = timeout.count() != 0 ? job_->options.barrier_timeout : job_->options.bootstrap_timeout;
  auto memory = MemberMemory::create(steps, bytes, job_->options.placement, limit);
  const std::uint64_t number = ++allocations_;  // also of one that has failed: it has failed on all members
  if (!memory) {
    return failure_of(why_reset(memory.error()));
  }
  memories_.add(number, *memory);
  return memory;
}

Result<void> LocalGroup::check(int rank) {
  if (job_->ended() != std::errc{}) {
    return in_ranks(was_given_up().error());
  }
  if (rank == job_->me || !is_dead_or_zombie(*job_, rank)) {
    return {};
  }
  return in_ranks(
      {std::errc::owner_dead,
       fmt::format("shmem: PE {}: the group has lost {}; end it, and make a new one of the PEs that are left", job_->me,
                   describe_pe(*job_, rank))});
}

Result<std::string> LocalGroup::missing() {
  const std::uint64_t mine = begun(job_->me).load(std::memory_order_relaxed);
  std::string text;
  for (int member = 0; member < job_->size; ++member) {
    if (begun(member).load(std::memory_order_relaxed) < mine) {
      text += (text.empty() ? "" : ", ") + describe_pe(*job_, member);
    }
  }
  return in_ranks({std::errc{}, text}).text;
}

Group::Statistics LocalGroup::statistics() {
  const std::scoped_lock lock(running_);
  const StagedStatistics& moved = collectives_.statistics();
  return {calls_, moved.direct_calls, moved.staged_bytes, mail_.direct_messages()};
}

Result<void> LocalGroup::was_given_up() const {
  return fail(std::errc::operation_canceled, fmt::format("shmem: PE {}: the group was given up: {}", job_->me,
                                                         job_->bootstrap->aborted().value_or("no reason is known")));
}

void LocalGroup::post(const MessagePointer& message) {
  mail_.post(message);
}

Result<void> LocalGroup::wait(const MessagePointer& message) {
  auto ok = mail_.wait(message);
  return ok ? ok : in_ranks(ok.error());
}

}  // namespace shmem
