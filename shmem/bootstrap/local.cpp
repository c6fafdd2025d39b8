// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/local.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/bootstrap/seconds_text.hpp"

namespace shmem {

namespace {

/// std::errc::owner_dead: somebody we wait for has exited. operation_canceled: the job was ended.
constexpr std::errc kPeerExited = std::errc::owner_dead;

bool is_alive(pid_t process) {
  return ::kill(process, 0) == 0 || errno == EPERM;
}

/// The value of a variable as a number from `least` on, or nothing.
std::optional<int> number(const char* variable, int least) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || rest != end || value < least) return std::nullopt;
  return value;
}

std::string environment_text() {
  std::string text;
  for (const char* name : {kJobFdVariable, kJobRankVariable, kJobSizeVariable}) {
    const char* value = std::getenv(name);
    text += std::string(text.empty() ? "" : " ") + name + (value == nullptr ? " is not set" : std::string("=") + value);
  }
  return text;
}

}  // namespace

LocalBootstrap::LocalBootstrap(std::shared_ptr<const JobMemory> memory, int rank, std::chrono::milliseconds limit)
    : memory_(std::move(memory)),
      rank_(rank),
      limit_(limit),
      policy_(wait_policy(memory_->pes(), memory_->header().processors)) {}

Result<std::unique_ptr<LocalBootstrap>> LocalBootstrap::join(std::shared_ptr<const JobMemory> memory, int rank,
                                                             std::chrono::milliseconds limit) {
  PeSlot& slot = memory->slot(rank);
  std::int32_t owner = 0;
  const pid_t self = ::getpid();
  // Acquire and release: a process that takes over from one that has left continues with its `round`.
  if (!slot.owner.compare_exchange_strong(owner, self, std::memory_order_acq_rel) && owner != self && is_alive(owner)) {
    return fail(std::errc::device_or_resource_busy,
                "shmem: PE " + std::to_string(rank) + " is process " + std::to_string(owner) +
                    " already; a program that a PE starts is not a PE (unset OSHRUN_JOB_FD for it)");
  }
  slot.owner.store(self, std::memory_order_release);
  if (slot.round.load(std::memory_order_relaxed) > memory->header().round.value.load(std::memory_order_acquire)) {
    return fail(std::errc::state_not_recoverable,
                "shmem: PE " + std::to_string(rank) +
                    " gave up in the middle of an earlier step of this job; start the job again");
  }
  slot.state.store(PeState::kJoined, std::memory_order_release);  // pairs with the launcher's load
  return std::unique_ptr<LocalBootstrap>(new LocalBootstrap(std::move(memory), rank, limit));
}

Result<std::vector<std::byte>> LocalBootstrap::allgather(std::span<const std::byte> mine) {
  const std::size_t each = mine.size();
  std::vector<std::byte> all(each * static_cast<std::size_t>(size()));
  std::size_t done = 0;
  do {
    const std::size_t part = std::min(each - done, Offering::kRoom);
    if (auto met = meet(mine.subspan(done, part), each); !met) return tl::make_unexpected(met.error());
    const std::uint64_t round = memory_->slot(rank_).round.load(std::memory_order_relaxed);
    for (int pe = 0; pe < size() && part > 0; ++pe) {
      std::memcpy(all.data() + each * static_cast<std::size_t>(pe) + done, offering(pe, round).bytes.data(), part);
    }
    done += part;
  } while (done < each);
  return all;
}

Result<void> LocalBootstrap::barrier() {
  return meet({}, 0);
}

Result<void> LocalBootstrap::meet(std::span<const std::byte> part, std::size_t whole) {
  if (failure_) return tl::make_unexpected(*failure_);
  PeSlot& slot = memory_->slot(rank_);
  JobHeader& header = memory_->header();
  const std::uint64_t round = slot.round.load(std::memory_order_relaxed) + 1;  // nobody else writes it
  Offering& offering = slot.offerings[round % 2];
  offering.whole = whole;
  std::copy(part.begin(), part.end(), offering.bytes.begin());
  slot.round.store(round, std::memory_order_relaxed);  // for messages only

  // Acquire and release: the last to arrive sees what all others offered, and its publish() passes that on.
  const std::uint32_t before = header.arrived.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == static_cast<std::uint32_t>(size())) {
    header.arrived.store(0, std::memory_order_relaxed);  // published with the round
    publish(header.round, round);
  }
  auto met = await(round);
  if (met) met = check_same(round);
  if (!met) failure_ = met.error();
  return met;
}

Result<void> LocalBootstrap::await(std::uint64_t round) const {
  const auto deadline = Clock::now() + limit_;
  const auto check = [&]() -> std::errc {
    if (memory_->ended()) return std::errc::operation_canceled;
    if (!missing(round, true).empty()) return kPeerExited;
    return Clock::now() < deadline ? std::errc{} : std::errc::timed_out;
  };
  const auto over = [round](std::uint64_t completed) { return completed >= round; };
  const std::errc why = wait_on(memory_->header().round, policy_, over, check);
  if (why == std::errc{}) return {};
  return tl::make_unexpected(explain(why, round));
}

Result<void> LocalBootstrap::check_same(std::uint64_t round) const {
  const std::uint64_t mine = offering(rank_, round).whole;
  for (int pe = 0; pe < size(); ++pe) {
    const std::uint64_t theirs = offering(pe, round).whole;
    if (theirs == mine) continue;
    return fail(std::errc::invalid_argument, "shmem: the PEs are not in the same step of the job's bootstrap: PE " +
                                                 std::to_string(rank_) + " has " + std::to_string(mine) +
                                                 " bytes to tell, PE " + std::to_string(pe) + " has " +
                                                 std::to_string(theirs));
  }
  return {};
}

Error LocalBootstrap::explain(std::errc why, std::uint64_t round) const {
  const std::string self = "shmem: PE " + std::to_string(rank_);
  if (why == std::errc::operation_canceled) return {why, "shmem: the job was ended: " + aborted().value_or("")};
  if (why == kPeerExited) return {why, self + " waits in vain for " + pe_list(missing(round, true)) + ": exited"};
  return {why, self + " waited " + seconds_text(limit_) + " for " + pe_list(missing(round, false)) + " to come (step " +
                   std::to_string(round) + " of the job's bootstrap)"};
}

std::vector<int> LocalBootstrap::missing(std::uint64_t round, bool only_dead) const {
  std::vector<int> pes;
  for (int pe = 0; pe < size(); ++pe) {
    const PeSlot& slot = memory_->slot(pe);
    // `exited` first, acquire: a PE that arrived and then exited has its `round` seen.
    const bool dead = slot.exited.load(std::memory_order_acquire) != 0;
    if (slot.round.load(std::memory_order_relaxed) < round && (dead || !only_dead)) pes.push_back(pe);
  }
  return pes;
}

const Offering& LocalBootstrap::offering(int pe, std::uint64_t round) const {
  return memory_->slot(pe).offerings[round % 2];
}

int LocalBootstrap::abort(int status, const std::string& reason) {
  memory_->end(rank_, status, reason);
  const auto end = memory_->ended();
  return end ? end->status : status;
}

std::optional<std::string> LocalBootstrap::aborted() const {
  auto end = memory_->ended();
  if (!end) return std::nullopt;
  return std::move(end->reason);
}

void LocalBootstrap::leave() {
  PeSlot& slot = memory_->slot(rank_);
  slot.state.store(PeState::kLeft, std::memory_order_release);  // pairs with the launcher's load
  slot.owner.store(0, std::memory_order_release);               // pairs with join()
}

bool in_local_job() {
  return std::getenv(kJobFdVariable) != nullptr;
}

Result<std::unique_ptr<Bootstrap>> join_local_job(std::chrono::milliseconds limit) {
  if (std::getenv(kJobLinesVariable) != nullptr) std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto fd = number(kJobFdVariable, 0);
  const auto rank = number(kJobRankVariable, 0);
  const auto size = number(kJobSizeVariable, 1);
  if (!fd || !rank || !size || *size > kMaxLocalPes || *rank >= *size) {
    return fail(std::errc::invalid_argument, "shmem: the environment names no job of oshrun's: " + environment_text());
  }
  auto memory = JobMemory::attach(*fd, *size);
  if (!memory) {
    return fail(memory.error().code, "shmem: cannot join the job of oshrun (" + environment_text() +
                                         "): " + memory.error().text +
                                         "; was the descriptor closed, or the environment handed on to a program that "
                                         "is no PE?");
  }
  return LocalBootstrap::join(std::make_shared<const JobMemory>(std::move(*memory)), *rank, limit);
}

}  // namespace shmem
