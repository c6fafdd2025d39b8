// SPDX-License-Identifier: Apache-2.0
// Starting a program that does not outlive this process.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "shmem/launcher/binding.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Variables that are added to, or replace, those of this process. Not thread-safe.
class Environment {
 public:
  /// A copy of this process's.
  Environment();
  void set(const std::string& name, const std::string& value);
  /// The value, up to the next call of set(); null if it is not set.
  [[nodiscard]] const char* get(const std::string& name) const;
  [[nodiscard]] const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;  // "NAME=VALUE"
};

/// `name` itself if it contains a slash, else the first executable of that name in the folders of `path` (the format of
/// $PATH). Relative names are relative to `folder`, or to the current folder if it is empty. The Error says what is
/// wrong.
Result<std::string> find_program(const std::string& name, const std::string& path, const std::string& folder = "");

/// The folder of this program; empty if unknown.
std::string own_folder();

/// Why a program did not start, sent by the process that was to become it.
struct ExecFailure {
  enum Step : int { kPrepare, kBind, kEnterFolder, kExecute };
  int tag;  // the Command's
  Step step;
  int error;
};

/// Where programs that are starting report failures: one pipe for all of them.
class ExecReports {
 public:
  static Result<ExecReports> open();

  [[nodiscard]] int write_end() const { return write_.get(); }
  /// The next report, if any. A report can be read before its process can be waited for.
  [[nodiscard]] std::optional<ExecFailure> next() const;

 private:
  ExecReports(base::UniqueFd read, base::UniqueFd write) : read_(std::move(read)), write_(std::move(write)) {}

  base::UniqueFd read_;
  base::UniqueFd write_;
};

struct ChildProgram {
  std::string file;
  std::vector<std::string> arguments;    // from argv[0] on
  std::vector<std::string> environment;  // "NAME=VALUE"
  int tag = 0;                           // for its ExecFailure
  pid_t group = 0;                       // the process group to join; 0: one of its own
  int input = -1;                        // standard input; -1: empty
  int output = -1;                       // standard output; -1: oshrun's
  int error = -1;                        // standard error; -1: oshrun's
  bool has_terminal = false;             // standard input is the terminal, which its group gets
  std::vector<int> inherited{};          // more descriptors that it inherits under the same numbers
  Cpus cpus{};                           // to run on; empty: oshrun's
  std::string folder{};                  // to run in, also for a relative `file`; empty: oshrun's
  std::optional<rlimit> open_files{};    // empty: oshrun's limit
};

/// Makes `group` the one that the terminal of standard input obeys. False with errno.
bool give_terminal(pid_t group);

/// Starts it; the kernel kills it when this process dies. Its signal mask is `mask`. Returns at once: `reports` says if
/// the program could not be executed, and its process then exits with 127.
Result<pid_t> start(const ChildProgram& program, const sigset_t& mask, const ExecReports& reports);

}  // namespace shmem::launcher
