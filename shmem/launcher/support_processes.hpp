// SPDX-License-Identifier: Apache-2.0
// A job's processes other than its PEs: the guard that ends them, the job's own fake device, and processes that PEs
// leave behind.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Leads the process group of the PEs, waits for the end of this process, however it comes, and kills the group. By
/// then the kernel has killed the PEs themselves (PR_SET_PDEATHSIG); the guard is for processes that they started, for
/// example the program of a shell script. Until it is reaped no other process can get its number, so that a signal to
/// group() reaches no other processes. Ends with the object.
class Guard {
 public:
  static Result<Guard> start();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Guard(Guard&& other) noexcept
      : pid_(other.pid_), alive_(std::exchange(other.alive_, false)), lifeline_(std::move(other.lifeline_)) {}
  Guard& operator=(Guard&& other) = delete;
  ~Guard();

  /// The PEs' process group, which is the guard's own. Only SIGKILL ends the guard.
  [[nodiscard]] pid_t group() const { return pid_; }
  /// Sends a signal to the whole group; does nothing once the guard is gone.
  void signal_group(int signal) const;
  /// The guard has been reaped elsewhere.
  void note_end() { alive_ = false; }

 private:
  Guard(pid_t pid, base::UniqueFd lifeline) : pid_(pid), lifeline_(std::move(lifeline)) {}

  pid_t pid_;
  bool alive_ = true;
  base::UniqueFd lifeline_;
};

/// A running gba-fake-device on a socket of its own outside the file system. Ends with the object, or with this
/// process.
class DeviceProcess {
 public:
  /// Starts the one in this program's folder, else the one in PATH, and waits until it is ready. `ports`: its number of
  /// ports; 0: its default.
  static Result<DeviceProcess> start(const sigset_t& mask, int ports);
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;
  DeviceProcess(DeviceProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), address_(std::move(other.address_)), output_(std::move(other.output_)) {}
  DeviceProcess& operator=(DeviceProcess&& other) = delete;
  ~DeviceProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }  // -1: not running
  /// The argument of gba_open().
  [[nodiscard]] const std::string& address() const { return address_; }
  /// The process has been reaped elsewhere.
  void note_end() { pid_ = -1; }

 private:
  DeviceProcess(pid_t pid, std::string address, base::UniqueFd output)
      : pid_(pid), address_(std::move(address)), output_(std::move(output)) {}

  Result<void> await_ready() const;

  pid_t pid_;
  std::string address_;
  base::UniqueFd output_;  // its output until it is ready; kept open so that it can go on writing
};

/// The children of this process, including those that have exited.
std::vector<pid_t> children();

/// Ends all children except `kept`, and their children, which become this process's (REQUIRES: it is a subreaper):
/// SIGTERM, then SIGKILL after `grace`. Returns their number.
int end_leftovers(const std::vector<pid_t>& kept, std::chrono::milliseconds grace);

}  // namespace shmem::launcher
