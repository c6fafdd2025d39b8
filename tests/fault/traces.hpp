// SPDX-License-Identifier: Apache-2.0
// What a job could leave behind: processes, shared memory, sockets, huge pages.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace test_support {

/// Moves this process, and those that it starts from now on, to a network namespace of their own, so that the sockets
/// of other jobs are not seen. Without the permission, all sockets of the machine are seen.
void have_own_sockets();

/// Watches one job, whose processes have `mark` ("NAME=VALUE") in their environment.
class Traces {
 public:
  /// REQUIRES: the job has not been started.
  explicit Traces(std::string mark);

  /// Notes the shared memory that the job has at this moment, to be looked for later.
  void note_memory();
  [[nodiscard]] std::size_t memory_count() const { return memory_.size(); }

  /// Describes what is left of the job; empty if nothing is. Waits a while for it to disappear.
  [[nodiscard]] std::string left() const;

 private:
  [[nodiscard]] std::string look() const;
  [[nodiscard]] std::vector<pid_t> processes() const;

  std::string mark_;
  std::set<std::string> sockets_before_;
  long huge_pages_before_;
  std::set<std::string> memory_;  // "device inode" of memfds
};

}  // namespace test_support
