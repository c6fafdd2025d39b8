// SPDX-License-Identifier: Apache-2.0
// Looks after waits that are not for the members of a team: meetings of cores, signals, lists of PEs.
#pragma once

#include <string>

#include "shmem/job.hpp"

namespace shmem {

/// The Check of one wait. Costs nothing until it is first asked, which is when the waiter has given up spinning; the
/// time runs from then on. Its errors: operation_canceled the job was ended; timed_out SHMEM_BARRIER_TIMEOUT is over.
class TimedWatch {
 public:
  explicit TimedWatch(const Job& job) : job_(job) {}

  std::errc operator()() {
    if (job_.bootstrap->aborted()) {
      return std::errc::operation_canceled;
    }
    const auto limit = job_.options.barrier_timeout;
    if (limit.count() == 0) {
      return {};
    }
    const auto now = Clock::now();
    if (deadline_ == Clock::time_point{}) {
      deadline_ = now + limit;
    }
    return now < deadline_ ? std::errc{} : std::errc::timed_out;
  }

  /// Why it ended, as the rest of a sentence that begins with what was waited for.
  [[nodiscard]] std::string explain(std::errc error) const {
    switch (error) {
      case std::errc::timed_out:
        return "timed out after " + std::to_string(job_.options.barrier_timeout.count()) +
               " ms (SHMEM_BARRIER_TIMEOUT)";
      case std::errc::operation_canceled: {
        const auto reason = job_.bootstrap->aborted();
        return reason ? "was given up because the job was ended: " + *reason
                      : "was given up because another core of this PE failed";
      }
      default:
        return "failed: " + std::make_error_code(error).message();
    }
  }

 private:
  const Job& job_;
  Clock::time_point deadline_{};
};

}  // namespace shmem
