// SPDX-License-Identifier: Apache-2.0
// A program that a benchmark starts and ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace bench {

/// Where a program's standard output goes when that is not a file descriptor.
constexpr int kInherited = -1;
constexpr int kDiscarded = -2;

/// A running program. It is told to end (SIGTERM, after a while SIGKILL) with the object, and ends with its parent.
/// Used by one thread. The constructor throws std::system_error if it cannot be started.
class Child {
 public:
  /// `environment` entries are "NAME=value", on top of this process's own.
  explicit Child(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
                 int output = kInherited);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  void stop() const;  // until `go_on` it gets no processor time; returns when it has stopped
  void go_on() const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();
  /// How it ended, as waitpid says; waits for that.
  int wait();

 private:
  std::string name_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

/// Runs a program to its end and gives its standard output. Throws std::runtime_error, with the end of the output, if
/// it fails or has not ended within `limit`.
std::string run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                std::chrono::seconds limit);

/// A program of the folder that this one stands in.
std::string sibling_program(const std::string& name);

}  // namespace bench
