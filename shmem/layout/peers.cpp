// SPDX-License-Identifier: Apache-2.0
#include "shmem/layout/peers.hpp"
#include "shmem/layout/leave.hpp"

#include <fmt/format.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/process_activity.hpp"
#include "shmem/cores/processors.hpp"

namespace shmem {
namespace {

/// In the negative of the id of a process that has left; no id is so large.
constexpr std::int32_t kLeft = std::int32_t{1} << 30;

/// The id of its process, or 0 if this process cannot see it.
pid_t visible_process(const Job& job, int pe) {
  const PeMetadata& theirs = job.metadata(pe);
  // Relaxed: a barrier has passed since both were written.
  const std::uint64_t space = theirs.process_space.load(std::memory_order_relaxed);
  const bool same = space != 0 && space == job.metadata(job.me).process_space.load(std::memory_order_relaxed);
  return same ? theirs.pid.load(std::memory_order_relaxed) : 0;
}

/// Another process has the number of the PE's, which has ended.
bool is_another(const Job& job, int pe, pid_t process) {
  const std::uint64_t theirs = job.metadata(pe).process_start.load(std::memory_order_relaxed);
  const std::uint64_t now = base::start_of(process);
  return theirs != 0 && now != 0 && now != theirs;
}

bool has_withdrawn(const Job& job, int pe) {
  // Acquire: pairs with leave(). A store of this PE that is missing afterwards does not come any more.
  return job.metadata(pe).pid.load(std::memory_order_acquire) < 0;
}

}  // namespace

void introduce(const Job& job) {
  PeMetadata& mine = job.metadata(job.me);
  struct stat space {};
  mine.process_space.store(::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0, std::memory_order_relaxed);
  mine.process_start.store(base::start_of(::getpid()), std::memory_order_relaxed);
  ::gethostname(mine.host.data(), mine.host.size() - 1);
  mine.pid.store(::getpid(), std::memory_order_release);  // pairs with Admission::give_up_late()
  const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
  mine.started.store(static_cast<std::uint64_t>(now.count()), std::memory_order_relaxed);
}

void withdraw(const Job& job) {
  job.metadata(job.me).pid.store(-::getpid(), std::memory_order_relaxed);
}

void leave(const Job& job) {
  job.metadata(job.me).pid.store(-(::getpid() | kLeft), std::memory_order_release);  // pairs with has_withdrawn()
}

bool has_left(const Job& job, int pe) {
  return job.metadata(pe).pid.load(std::memory_order_relaxed) <= -kLeft;
}

bool is_dead(const Job& job, int pe) {
  const pid_t pid = visible_process(job, pe);
  return has_withdrawn(job, pe) ||
         (pid != 0 ? ::kill(pid, 0) != 0 && errno == ESRCH : pe != job.me && job.memory.has_died(pe));
}

bool is_dead_or_zombie(const Job& job, int pe) {
  if (is_dead(job, pe)) {
    return true;
  }
  const pid_t process = visible_process(job, pe);
  return process != 0 && (base::has_ended(process) || is_another(job, pe, process));
}

bool was_replaced(const Job& job, int pe, std::uint64_t admissions) {
  // Acquire: pairs with the process that stores it before its id, so that its id is never taken for that of the member.
  return job.metadata(pe).admitted.load(std::memory_order_acquire) > admissions;
}

bool is_stopped(const Job& job, int pe) {
  const pid_t process = visible_process(job, pe);
  return process != 0 && base::is_stopped(process);
}

std::string describe_pe(const Job& job, int pe) {
  const PeMetadata& theirs = job.metadata(pe);
  const pid_t pid = std::abs(theirs.pid.load(std::memory_order_relaxed)) & ~kLeft;
  std::string text = fmt::format("PE {} (pid {}", job.nodes.world(pe), pid);
  if (theirs.host[0] != '\0') {
    text += std::string(" on ") + theirs.host.data();
  }
  if (has_withdrawn(job, pe)) {
    return text + (has_left(job, pe) ? ", which has left the group)" : ", which could not start)");
  }
  if (!is_dead_or_zombie(job, pe)) {
    return text + (is_stopped(job, pe) ? ", stopped)" : ")");
  }
  const std::string end = job.bootstrap->end_of(pe);
  return text + ", " + (end.empty() ? "dead" : end) + ")";
}

std::optional<std::string> why_in_vain(const Job& job) {
  std::optional<int> gone;
  for (int pe = 0; pe < job.size && !gone; ++pe) {
    gone = pe != job.me && is_dead_or_zombie(job, pe) ? std::optional(pe) : std::nullopt;
  }
  // Afterwards: one that has left because another one died has said so before.
  if (auto why = job.bootstrap->aborted(); why || !gone) {
    return why;
  }
  return fmt::format("shmem: PE {}: a collective call waited for {}", job.nodes.world(job.me), describe_pe(job, *gone));
}

}  // namespace shmem
