// SPDX-License-Identifier: Apache-2.0
// Programs that tests, benchmarks and tools start: watched, and always ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace base {

using Seconds = std::chrono::duration<double>;

/// How a program ended: the exit code, or the signal that ended it.
struct Exit {
  int code = -1;
  int signal = 0;
  [[nodiscard]] bool clean() const { return signal == 0 && code == 0; }
};

/// Where the output of a program goes: standard output and error to Process::output(); only standard output, and errors
/// to those of the caller; to the caller's; to /dev/null, but errors to the caller's.
enum class Output { kCollected, kStandardCollected, kInherited, kDiscarded };

struct ProcessOptions {
  Output output = Output::kCollected;
  /// How long the program may take to clean up: with the object, or with the caller, it gets a SIGTERM, and after this
  /// time a SIGKILL. 0: a SIGKILL at once.
  Seconds grace{0};
};

/// A child process in a process group of its own. The whole group is killed with the object. The kernel signals the
/// program when the thread that made the object ends, so it does not outlive a caller that is killed. Used by one
/// thread.
class Process {
 public:
  /// Entries of `environment` are "NAME=value", added to the caller's own. Throws std::system_error if the process
  /// cannot be started; a program that does not exist ends with code 127.
  explicit Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                   const ProcessOptions& options = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() { return !poll(); }
  /// What has been collected so far.
  [[nodiscard]] std::string output() const;
  /// The end of the program; empty if it still runs after `limit`.
  std::optional<Exit> wait(Seconds limit);
  /// The same without a limit.
  Exit wait();
  /// True once `text` is in the output; false if it is not within `limit`, or if the program ends without it.
  bool wait_for_output(const std::string& text, Seconds limit);

  void signal(int number) const;
  /// Returns when the program has stopped; it gets no processor time until resume().
  void stop() const;
  void resume() const;

 private:
  std::optional<Exit> poll();

  Seconds grace_;
  UniqueFd output_;
  pid_t pid_ = -1;
  UniqueFd end_;  // a pidfd, readable when the program has ended; none if the kernel has none
  std::optional<Exit> exit_;
};

/// Runs a program to its end. One that does not end within `limit` is killed, and `exit` says so.
struct Outcome {
  Exit exit;
  std::string output;
};
Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, Seconds limit,
            const ProcessOptions& options = {});

}  // namespace base
