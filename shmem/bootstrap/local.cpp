// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/local.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "base/number.hpp"
#include "base/process_activity.hpp"
#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/config/failure.hpp"

namespace shmem {

namespace {

/// A PE that is waited for has exited.
constexpr std::errc kPeerExited = std::errc::owner_dead;

bool is_alive(const PeSlot& slot, pid_t owner) {
  // Relaxed: the caller has read `owner` with acquire, or no process can take the slot at that time.
  return !base::has_ended(owner, slot.start.load(std::memory_order_relaxed));
}

/// The value of a variable as a number, `least` or more; or nothing.
std::optional<int> number(const char* variable, int least) {
  const char* text = std::getenv(variable);
  return text != nullptr ? base::number(text, least, std::numeric_limits<int>::max()) : std::nullopt;
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
  const bool is_free = slot.owner.compare_exchange_strong(owner, self, std::memory_order_acq_rel);
  owner = std::abs(owner);
  if (!is_free && owner != self && is_alive(slot, owner)) {
    return fail(
        std::errc::device_or_resource_busy,
        fmt::format(
            "shmem: PE {} is process {} already; a program that a PE starts is not a PE (unset OSHRUN_JOB_FD for it)",
            rank, owner));
  }
  if (!is_free) {
    slot.start.store(0, std::memory_order_relaxed);  // a process that finds this one there does not find its start yet
    slot.owner.store(self, std::memory_order_release);
  }
  slot.start.store(base::start_of(self), std::memory_order_relaxed);
  const bool took_over = owner != 0 && owner != self && slot.state.load(std::memory_order_acquire) == PeState::kJoined;
  if (took_over && memory->header().survives.load(std::memory_order_acquire) != 0) {
    std::unique_ptr<LocalBootstrap> bootstrap(new LocalBootstrap(std::move(memory), rank, limit));
    auto read = bootstrap->read_record();
    return read ? Result<std::unique_ptr<LocalBootstrap>>(std::move(bootstrap)) : read.error();
  }
  if (slot.round.load(std::memory_order_relaxed) > memory->header().round.value.load(std::memory_order_acquire)) {
    return fail(
        std::errc::state_not_recoverable,
        fmt::format("shmem: PE {} gave up in the middle of an earlier step of this job; start the job again", rank));
  }
  slot.state.store(PeState::kJoined, std::memory_order_release);  // pairs with the launcher's load
  return std::unique_ptr<LocalBootstrap>(new LocalBootstrap(std::move(memory), rank, limit));
}

Result<void> LocalBootstrap::read_record() {
  replaces_ = true;
  memory_->slot(rank_).record.store(0, std::memory_order_relaxed);
  std::string why = "no other PE is left";
  for (int pe = 0; pe < size(); ++pe) {
    const PeSlot& slot = memory_->slot(pe);
    const std::uint32_t record = slot.record.load(std::memory_order_acquire);  // pairs with keep_for_replacement()
    const pid_t owner = slot.owner.load(std::memory_order_relaxed);
    if (pe == rank_ || record == 0 || owner <= 0 || !is_alive(slot, owner)) {
      continue;
    }
    auto read = StartRecord::read(owner, static_cast<int>(record - 1));
    if (read) {
      record_ = *std::move(read);
      return {};
    }
    why = read.error().text;
  }
  return fail(std::errc::state_not_recoverable,
              fmt::format("shmem: PE {} cannot take the place of the process that has died: {}", rank_, why));
}

std::optional<NodeFds> LocalBootstrap::take_over() {
  return replaces_ ? std::optional(record_.take_files()) : std::nullopt;
}

Result<void> LocalBootstrap::keep_for_replacement(int heaps, int areas) {
  auto file = record_.write(heaps, areas);
  if (!file) {
    return file.error();
  }
  record_file_ = *std::move(file);
  // Release: pairs with read_record().
  memory_->slot(rank_).record.store(1 + static_cast<std::uint32_t>(record_file_.get()), std::memory_order_release);
  return {};
}

Result<std::vector<std::byte>> LocalBootstrap::allgather(std::span<const std::byte> mine) {
  if (replaces_) {
    auto all = record_.next(mine.size() * static_cast<std::size_t>(size()));
    if (!all) {
      return fail(all.error().code, fmt::format("shmem: PE {} cannot take the place of the process that has died: {}",
                                                rank_, all.error().text));
    }
    std::copy(mine.begin(), mine.end(), all->begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank_);
    return all;
  }
  auto all = gather(mine);
  if (all && wants_to_survive() && record_file_.get() < 0 && !is_unrecorded_) {
    record_.add(*all);
  }
  return all;
}

Result<std::vector<std::byte>> LocalBootstrap::gather(std::span<const std::byte> mine) {
  const std::size_t each = mine.size();
  std::vector<std::byte> all(each * static_cast<std::size_t>(size()));
  std::size_t done = 0;
  do {
    const std::size_t part = std::min(each - done, Offering::kRoom);
    if (auto ok = run_round(mine.subspan(done, part), each); !ok) {
      return ok.error();
    }
    const std::uint64_t round = memory_->slot(rank_).round.load(std::memory_order_relaxed);
    // One pass: in a large job these lines are many, and each step reads them.
    for (int pe = 0; pe < size(); ++pe) {
      const Offering& theirs = offering(pe, round);
      if (theirs.whole != each) {
        failure_ = different_steps(static_cast<std::size_t>(rank_), each, static_cast<std::size_t>(pe), theirs.whole);
        return *failure_;
      }
      if (part > 0) {
        std::memcpy(all.data() + each * static_cast<std::size_t>(pe) + done, theirs.bytes.data(), part);
      }
    }
    done += part;
  } while (done < each);
  return all;
}

Result<void> LocalBootstrap::run_round(std::span<const std::byte> part, std::size_t whole) {
  if (failure_) {
    return *failure_;
  }
  PeSlot& slot = memory_->slot(rank_);
  JobHeader& header = memory_->header();
  const std::uint64_t round = slot.round.load(std::memory_order_relaxed) + 1;  // written by this PE only
  Offering& offering = slot.offerings[round % 2];
  offering.whole = whole;
  std::copy(part.begin(), part.end(), offering.bytes.begin());
  slot.round.store(round, std::memory_order_relaxed);  // for messages only

  // Acquire and release: the last PE to arrive sees the offerings of all, and its publish() passes them on.
  const std::uint32_t before = header.arrived.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == static_cast<std::uint32_t>(size())) {
    header.arrived.store(0, std::memory_order_relaxed);  // published with the round
    publish(header.round, round);
  }
  auto ok = await(round);
  if (!ok) {
    failure_ = ok.error();
  }
  return ok;
}

Result<void> LocalBootstrap::await(std::uint64_t round) const {
  const auto deadline = Clock::now() + limit_;
  bool has_slept = false;
  const auto check = [&]() -> std::errc {
    if (memory_->ended()) {
      return std::errc::operation_canceled;
    }
    // Most waits are over after the first sleep, and looking at all PEs takes long in a large job.
    if (std::exchange(has_slept, true) && !missing(round, true).empty()) {
      return kPeerExited;
    }
    return Clock::now() < deadline ? std::errc{} : std::errc::timed_out;
  };
  const auto over = [round](std::uint64_t completed) { return completed >= round; };
  const std::errc why = wait_on(memory_->header().round, policy_, over, check);
  if (why == std::errc{}) {
    return {};
  }
  return explain(why, round);
}

Error LocalBootstrap::explain(std::errc why, std::uint64_t round) const {
  if (why == std::errc::operation_canceled) {
    return {why, fmt::format("shmem: PE {}: the job was ended: {}", rank_, aborted().value_or(""))};
  }
  if (why == kPeerExited) {
    const std::vector<int> gone = missing(round, true);
    return {why, fmt::format("shmem: PE {} waits for {}: {}", rank_, pe_list(gone),
                             gone.size() == 1 ? end_of(gone.front()) : "exited")};
  }
  return {why, fmt::format("shmem: PE {} waited {} for {} to come (step {} of the job's bootstrap)", rank_,
                           seconds_text(limit_), pe_list(missing(round, false)), round)};
}

std::vector<int> LocalBootstrap::missing(std::uint64_t round, bool only_dead) const {
  std::vector<int> pes;
  for (int pe = 0; pe < size(); ++pe) {
    const PeSlot& slot = memory_->slot(pe);
    // `exited` first, acquire: the `round` of a PE that arrived and then exited is visible.
    const bool dead = slot.exited.load(std::memory_order_acquire) != 0;
    if (slot.round.load(std::memory_order_relaxed) < round && (dead || !only_dead)) {
      pes.push_back(pe);
    }
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
  if (!end) {
    return std::nullopt;
  }
  return std::move(end->reason);
}

std::string LocalBootstrap::end_of(int rank) const {
  const std::atomic<std::uint32_t>& exited = memory_->slot(rank).exited;
  // The launcher hears of the end at about the same time as the caller, if it has a processor.
  constexpr std::chrono::milliseconds kLauncherDelay{2000};
  const auto deadline = Clock::now() + kLauncherDelay;
  std::uint32_t ended = exited.load(std::memory_order_acquire);  // pairs with the launcher's store
  while (ended == 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ended = exited.load(std::memory_order_acquire);
  }
  if (ended == 0) {
    return "";
  }
  const int status = static_cast<int>(ended - 1);
  return WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                             : fmt::format("exited with status {}", WEXITSTATUS(status));
}

bool LocalBootstrap::has_launcher_that_tells() const {
  return memory_->header().survives.load(std::memory_order_acquire) == 0;  // pairs with survive()
}

Result<void> LocalBootstrap::survive() {
  memory_->header().survives.store(1, std::memory_order_release);  // pairs with the launcher's load
  return {};
}

void LocalBootstrap::leave_out(int rank, std::int32_t process) {
  // Relaxed: the launcher reads nothing else because of it.
  memory_->slot(rank).owner.compare_exchange_strong(process, -process, std::memory_order_relaxed);
}

void LocalBootstrap::leave() {
  PeSlot& slot = memory_->slot(rank_);
  slot.record.store(0, std::memory_order_relaxed);
  slot.start.store(0, std::memory_order_relaxed);
  slot.state.store(PeState::kLeft, std::memory_order_release);  // pairs with the launcher's load
  slot.owner.store(0, std::memory_order_release);               // pairs with join()
}

bool in_local_job() {
  return std::getenv(kJobFdVariable) != nullptr;
}

Result<std::unique_ptr<Bootstrap>> join_local_job(std::chrono::milliseconds limit) {
  if (std::getenv(kJobLinesVariable) != nullptr) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
  }
  const auto fd = number(kJobFdVariable, 0);
  const auto rank = number(kJobRankVariable, 0);
  const auto size = number(kJobSizeVariable, 1);
  if (!fd || !rank || !size || *size > kMaxLocalPes || *rank >= *size) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: the environment does not describe a job of oshrun: {}", environment_text()));
  }
  auto memory = JobMemory::attach(*fd, *size);
  if (!memory) {
    return fail(memory.error().code,
                fmt::format("shmem: cannot join the job of oshrun ({}): {}; was the descriptor closed, or is this a "
                            "program that a PE started?",
                            environment_text(), memory.error().text));
  }
  return LocalBootstrap::join(std::make_shared<const JobMemory>(std::move(*memory)), *rank, limit);
}

}  // namespace shmem
