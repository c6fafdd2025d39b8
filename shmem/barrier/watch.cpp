// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/watch.hpp"

#include <signal.h>

#include <cerrno>

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kLookAtPeers{500};
constexpr int kMostNamed = 16;

bool is_dead(pid_t pid) {
  return pid != 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

bool BarrierWatch::missing(int member) const {
  return view_.member(member).entered.load(std::memory_order_relaxed) < count_;
}

bool BarrierWatch::somebody_died() const {
  for (int i = 0; i < view_.size(); ++i) {
    // Looked at in this order: a member that arrived and then ended is not missing.
    if (is_dead(job_.metadata(map_.pe(i)).pid.load(std::memory_order_relaxed)) && missing(i)) {
      return true;
    }
  }
  return false;
}

std::errc BarrierWatch::operator()() {
  if (job_.bootstrap->aborted()) {
    return std::errc::operation_canceled;
  }
  const auto now = Clock::now();
  if (next_look_ == Clock::time_point{}) {
    next_look_ = now + kLookAtPeers;
    deadline_ =
        job_.options.barrier_timeout.count() > 0 ? now + job_.options.barrier_timeout : Clock::time_point::max();
  }
  if (now >= deadline_) {
    return std::errc::timed_out;
  }
  if (now >= next_look_) {
    next_look_ = now + kLookAtPeers;
    if (somebody_died()) {
      return std::errc::owner_dead;
    }
  }
  return {};
}

std::string BarrierWatch::explain(std::errc error, int team, const char* algorithm) const {
  std::string text = "shmem: PE " + std::to_string(job_.me) + ": barrier " + std::to_string(count_) + " of team " +
                     std::to_string(team) + " (" + algorithm + ") ";
  switch (error) {
    case std::errc::timed_out:
      text += "timed out after " + std::to_string(job_.options.barrier_timeout.count()) +
              " ms (SHMEM_BARRIER_TIMEOUT); it waited for";
      break;
    case std::errc::owner_dead:
      text += "cannot complete: a PE has died; it waited for";
      break;
    case std::errc::operation_canceled:
      text += "was given up because the job was ended: " + job_.bootstrap->aborted().value_or("") + "; it waited for";
      break;
    default:
      text += "failed: " + std::make_error_code(error).message() + "; it waited for";
      break;
  }
  int named = 0;
  for (int i = 0; i < view_.size(); ++i) {
    if (!missing(i)) {
      continue;
    }
    if (++named > kMostNamed) {
      return text + " and more";
    }
    const pid_t pid = job_.metadata(map_.pe(i)).pid.load(std::memory_order_relaxed);
    text += (named > 1 ? ", PE " : " PE ") + std::to_string(map_.pe(i)) + " (pid " + std::to_string(pid) +
            (is_dead(pid) ? ", dead)" : ")");
  }
  return named > 0 ? text : text + " nobody: all have arrived";
}

}  // namespace shmem
