// SPDX-License-Identifier: Apache-2.0
// Programs under test: started, watched, always ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace test_support {

using Seconds = std::chrono::duration<double>;

/// A temporary folder that goes with the object.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// How a program ended: the exit code, or the signal that ended it.
struct Exit {
  int code = -1;
  int signal = 0;
  [[nodiscard]] bool clean() const { return signal == 0 && code == 0; }
};

/// A child process in a process group of its own, its output collected in a file. The whole group
/// is killed with the object. The kernel kills the program when the thread that has made the object ends, so it goes
/// with a test that is killed, too. Used by one thread.
class Process {
 public:
  /// `environment` entries are "NAME=value", on top of the test's own. Throws std::system_error if
  /// it cannot be started.
  explicit Process(std::vector<std::string> arguments, const std::vector<std::string>& environment = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Standard output and error so far, together.
  [[nodiscard]] std::string output() const;
  /// The end of the program, or nothing if it still runs after `limit`.
  std::optional<Exit> wait(Seconds limit);
  /// True once `text` stands in the output; false if that has not come within `limit` or the
  /// program ended without it.
  bool wait_for_output(const std::string& text, Seconds limit);
  void signal(int number) const;

 private:
  std::optional<Exit> poll();

  TempDir dir_;
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
};

/// A program of the build tree: "gba-fake-device" -> $GBA_BIN/gba-fake-device.
std::string program(const std::string& name);
/// A helper program of the tests: $GBA_TEST_BIN/name.
std::string test_program(const std::string& name);

/// Runs to the end. If it does not end within `limit` it is killed and the signal says so.
struct Outcome {
  Exit exit;
  std::string output;
};
Outcome run(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
            Seconds limit = Seconds{30});

/// Processes whose command line contains `text` (zombies left out): what a test must not leave
/// behind.
std::vector<pid_t> processes_matching(const std::string& text);
/// True once there are none, false if there still are some after `limit`.
bool none_matching(const std::string& text, Seconds limit = Seconds{30});

}  // namespace test_support
