// SPDX-License-Identifier: Apache-2.0
// The fake device that a job has for itself.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>

#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// A running gba-fake-device on a socket of its own, which stands in no file system. Ends with the object, or with this
/// process.
class DeviceProcess {
 public:
  /// Starts the one beside this program, else the one in PATH, and waits until it is ready. `ports`: that it has; 0: as
  /// many as it has by itself.
  static Result<DeviceProcess> start(const sigset_t& mask, int ports);
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;
  DeviceProcess(DeviceProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), address_(std::move(other.address_)), output_(std::move(other.output_)) {}
  DeviceProcess& operator=(DeviceProcess&& other) = delete;
  ~DeviceProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }  // -1: not running
  /// What gba_open() takes.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Somebody else has waited for the process.
  void note_end() { pid_ = -1; }

 private:
  DeviceProcess(pid_t pid, std::string address, UniqueFd output)
      : pid_(pid), address_(std::move(address)), output_(std::move(output)) {}

  Result<void> await_ready() const;

  pid_t pid_;
  std::string address_;
  UniqueFd output_;  // where it says that it is ready; kept open so that it can go on writing
};

}  // namespace shmem::launcher
