// SPDX-License-Identifier: Apache-2.0
// One job: its PEs from start to end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/device_process.hpp"
#include "shmem/launcher/environment.hpp"
#include "shmem/launcher/guard.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/launcher/signals.hpp"
#include "shmem/launcher/terminal_input.hpp"

namespace shmem::launcher {

/// Starts the PEs, watches them, and ends all of them when one fails. Owns every process of the job. Used by one
/// thread.
class Job {
 public:
  /// What the job stands on, made before the first PE starts.
  struct Parts {
    Options options;
    std::string file;  // the program's
    Signals signals;
    JobMemory memory;
    Guard guard;
    ExecReports reports;
    std::optional<DeviceProcess> device;
    std::optional<TerminalInput> terminal;
  };

  explicit Job(Parts parts) : parts_(std::move(parts)) {}

  /// To the end of the last PE, and of what the PEs have started. Returns the job's exit status.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Pe {
    pid_t pid = -1;
    bool running = false;
    bool deserted = false;  // exited with status 0 and without leaving the job
  };
  /// How far the job is on its way to an early end.
  enum class Ending { kNo, kTold, kTerminated, kKilled };

  // Starting.
  void start_pes();
  [[nodiscard]] ChildProgram program_of(int pe, const Environment& common) const;
  [[nodiscard]] Environment common_environment() const;

  // Watching.
  void wait_for_something();
  [[nodiscard]] std::chrono::milliseconds patience() const;
  void read_signals();
  void read_exec_failures();
  void reap();
  void pe_ended(int pe, int wait_status);
  void device_ended(int wait_status);
  void look_for_abort();
  void look_for_deserters();

  // Ending.
  void end(int status, const std::string& reason, Ending ending);
  void advance_ending();
  void signal_pes(int signal);
  void stop_with_terminal();

  [[nodiscard]] bool any_running() const;
  [[nodiscard]] std::string name_of(int pe) const;

  Parts parts_;
  std::vector<Pe> pes_;
  std::optional<int> status_;
  Ending ending_ = Ending::kNo;
  Clock::time_point next_step_{};                    // of the ending
  std::optional<Clock::time_point> timeout_;         // of --timeout
  std::optional<Clock::time_point> deserted_since_;  // since when some wait for others that will not come
};

}  // namespace shmem::launcher
