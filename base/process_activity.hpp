// SPDX-License-Identifier: Apache-2.0
// Whether another process of this machine gets anywhere.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace base {

/// The process has ended, whether or not its parent knows. False if it cannot be told.
bool has_ended(pid_t process);

/// The kernel is ending the process, or will: it closes what the process has open before the parent can learn of its
/// end. False if it cannot be told.
bool is_dying(pid_t process);

/// When the process started, in ticks since the machine did: tells it from a later one with the same number. 0 if it
/// cannot be told.
std::uint64_t start_of(pid_t process);

/// The process that started then (start_of) has ended, also if another one has got its number since. `start`: 0 if it
/// is not known.
bool has_ended(pid_t process, std::uint64_t start);

/// The process is stopped by a signal or by a debugger. False also if it cannot be seen.
bool is_stopped(pid_t process);

/// Tells a process that is slow, because others have the processors, from one that does nothing: it is stopped, frozen,
/// or blocked. Used by one thread at a time.
class ProcessActivity {
 public:
  /// `process`: 0 if it is not known.
  explicit ProcessActivity(pid_t process) : process_(process) {}

  /// True if one of its threads runs, waits for a processor or has been killed, or if any has run since the last call;
  /// also if the process cannot be seen, since then nothing speaks against it.
  bool works();
  /// At least half of the time between the last two calls of works(), its threads waited for a processor.
  [[nodiscard]] bool starved() const { return starved_; }

 private:
  pid_t process_;
  // At the last call: what its threads had run and waited for a processor, all together, in nanoseconds.
  std::uint64_t ran_ = UINT64_MAX;
  std::uint64_t waited_ = UINT64_MAX;
  std::chrono::steady_clock::time_point looked_;
  bool starved_ = false;
};

}  // namespace base
