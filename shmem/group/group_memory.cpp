// SPDX-License-Identifier: Apache-2.0
// The symmetric memory of a group.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "shmem/bootstrap/nodes.hpp"
#include "shmem/group/rank_group.hpp"
#include "shmem/layout/peers.hpp"

namespace shmem {
namespace {

/// The steps by which members set something up, as collective calls of the group: its store may be gone.
class CollectiveSteps final : public Bootstrap {
 public:
  CollectiveSteps(const Job& job, StagedCollectives& collectives) : job_(job), collectives_(collectives) {}

  [[nodiscard]] int rank() const override { return job_.world_me(); }
  [[nodiscard]] int size() const override { return job_.world_size(); }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    const auto members = static_cast<std::size_t>(size());
    std::vector<std::byte> all(mine.size() * members);
    std::vector<void*> to;
    for (std::size_t at = 0; at < members; ++at) {
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
  [[nodiscard]] std::optional<std::string> aborted() const override { return why_in_vain(job_); }
  void leave() override {}

 private:
  const Job& job_;
  StagedCollectives& collectives_;
};

}  // namespace

/// The connection of a process that is killed ends, or is refused, a little before the process counts as dead.
Error RankGroup::why_reset(const Error& error) const {
  constexpr std::chrono::seconds kLimit{1};
  if (error.code != std::errc::connection_reset && error.code != std::errc::connection_refused &&
      error.code != std::errc::broken_pipe) {
    return error;
  }
  const auto end = Clock::now() + kLimit;
  do {
    for (int member = 0; member < job_->size; ++member) {
      if (member != job_->me && is_dead_or_zombie(*job_, member)) {
        if (job_->bootstrap->aborted()) {
          return was_given_up().error();  // it has left because another one died
        }
        return {std::errc::owner_dead, fmt::format("shmem: PE {}: symmetric memory could not be shared with {}",
                                                   job_->me, describe_pe(*job_, member))};
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < end);
  return error;
}

Result<std::shared_ptr<MemberMemory>> RankGroup::allocate(std::size_t bytes, std::chrono::nanoseconds timeout) try {
  const std::scoped_lock lock(running_);
  if (auto ok = begin(timeout); !ok) {
    return failure_of(ok.error());
  }
  memories_.drop_unused();
  std::unique_ptr<Bootstrap> steps = std::make_unique<CollectiveSteps>(*job_, *collectives_);
  if (between_) {
    steps = std::make_unique<NodeBootstrap>(std::move(steps), job_->nodes);
  }
  const auto limit = timeout.count() != 0 ? job_->options.barrier_timeout : job_->options.bootstrap_timeout;
  auto memory = MemberMemory::create(*steps, bytes, job_->options.placement, limit);
  const std::uint64_t number = ++allocations_;  // also of one that has failed: it has failed on all members
  if (!memory) {
    return failure_of(why_reset(memory.error()));
  }
  memories_.add(number, *memory);
  return memory;
} catch (const std::exception&) {  // as in run()
  const std::scoped_lock lock(running_);
  fail_without_memory();
  throw;
}

}  // namespace shmem
