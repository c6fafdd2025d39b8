// SPDX-License-Identifier: Apache-2.0
// Starting a program that does not outlive us.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "shmem/launcher/binding.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Why a program did not start, sent by the process that was to become it.
struct ExecFailure {
  enum Step : int { kPrepare, kBind, kEnterFolder, kExecute };
  int tag;  // which one
  Step step;
  int error;
};

/// Where programs that are being started report failures: one pipe for all of them.
class ExecReports {
 public:
  static Result<ExecReports> open();

  [[nodiscard]] int write_end() const { return write_.get(); }
  /// The next report that is there. Every report is there before its process can be waited for.
  [[nodiscard]] std::optional<ExecFailure> next() const;

 private:
  ExecReports(UniqueFd read, UniqueFd write) : read_(std::move(read)), write_(std::move(write)) {}

  UniqueFd read_;
  UniqueFd write_;
};

struct ChildProgram {
  std::string file;
  std::vector<std::string> arguments;    // from argv[0] on
  std::vector<std::string> environment;  // "NAME=VALUE"
  int tag = 0;                           // for its ExecFailure
  pid_t group = 0;                       // the process group to enter; 0: one of its own
  int input = -1;                        // standard input; -1: nothing to read
  int output = -1;                       // standard output; -1: ours
  int error = -1;                        // standard error; -1: ours
  int inherited = -1;                    // one more descriptor that it gets, under the same number; -1: none
  Cpus cpus{};                           // to run on; empty: where we do
  std::string folder{};                  // to run in, also what `file` is relative to; empty: ours
  std::optional<rlimit> open_files{};    // none: our limit
};

/// Starts it; the kernel kills it when this process dies. Its signal mask is `mask`. Returns at once: whether the
/// program could be executed is heard of from `reports`, and its process exits with 127 if not.
Result<pid_t> start(const ChildProgram& program, const sigset_t& mask, const ExecReports& reports);

}  // namespace shmem::launcher
