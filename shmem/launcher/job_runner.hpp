// SPDX-License-Identifier: Apache-2.0
// What a job has whose processes are PEs of this machine (job.hpp) or oshruns on other nodes (remote_job.hpp).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "shmem/launcher/child.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/launcher/output.hpp"
#include "shmem/launcher/signals.hpp"
#include "shmem/launcher/support_processes.hpp"

namespace shmem::launcher {

/// Starts processes, watches them, and ends all of them when one fails. Used by one thread.
class JobRunner {
 public:
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;
  virtual ~JobRunner() = default;

  /// Runs until the last process has ended. Returns the job's exit status.
  int run();

  /// What it needs before the first process starts.
  struct Tools {
    Options options;
    Signals signals;
    Guard guard;
    ExecReports reports;
    Output output;

    static Result<Tools> make(Options options, Result<Output> (*open)(const Options&));
  };

 protected:
  using Clock = std::chrono::steady_clock;
  struct Process {
    pid_t pid = -1;
    bool running = false;
  };
  /// The stage of an early end. kTold: PEs end by themselves.
  enum class Ending { kNo, kTold, kTerminated, kKilled };

  /// The poll interval for events that wake no poll(), such as a PE that ends the job.
  static constexpr std::chrono::milliseconds kLook{100};
  /// How long the end of a process that is dying, and may be the cause of another one's, is waited for. The kernel
  /// needs a processor for it, which others may have.
  static constexpr std::chrono::milliseconds kDying{10'000};
  static constexpr int kTimeoutStatus = 124;
  static constexpr int kCannotExecute = 126;
  static constexpr int kNotFound = 127;

  explicit JobRunner(Tools tools) : tools_(std::move(tools)) {}

  void say(const std::string& text) { tools_.output.say(text); }
  [[nodiscard]] bool any_running();
  [[nodiscard]] Ending ending() const { return ending_; }
  [[nodiscard]] std::optional<int> job_status() const { return status_; }
  void set_job_status(int status) { status_ = status; }
  /// Begins a stage of an early end, with the job's status if it is the first stage.
  void end(int status, const std::string& reason, Ending ending);
  /// Takes the ends of processes. Those that are dying are waited for if one has failed, whose cause they may be, or
  /// `in_any_case`.
  void reap(bool in_any_case = false);
  /// Passes on all that the processes have printed, unfinished lines, too.
  void finish_output();
  /// Waits as long as the reader needs, like any program that writes; false: a signal or --timeout ended that.
  bool drain_output();

  Tools tools_;

 private:
  virtual std::size_t processes() = 0;
  virtual Process& process(std::size_t index) = 0;

  // run() calls these in this order.
  virtual void start_processes() = 0;
  /// What else to wait for, and what has come of it.
  virtual std::array<pollfd, 2> inputs() { return {pollfd{-1, 0, 0}, pollfd{-1, 0, 0}}; }
  virtual void take_inputs(const std::array<pollfd, 2>& /*ready*/) {}
  /// What wakes no poll().
  virtual void look() = 0;
  /// What is left to do once all processes have ended. Returns the job's exit status.
  virtual int finish() = 0;

  /// SIGUSR1 or SIGUSR2: the meaning is the program's; batch systems send them some time before they end a job.
  virtual void forward(int signal) = 0;
  /// PEs on other nodes do not stop with it.
  virtual void stop_with_terminal() {}
  virtual void exec_failed(const ExecFailure& failure) = 0;
  virtual void process_ended(std::size_t index, int wait_status) = 0;
  /// A child has ended that is not one of the processes.
  virtual void other_ended(pid_t /*pid*/, int /*wait_status*/) {}
  virtual void time_is_over() = 0;
  /// For a terminal: what the job waits for `passed` after its start; "": nothing.
  virtual std::string progress(std::chrono::seconds passed) = 0;
  /// Does what the stage asks for. Returns how long the processes have until the next one.
  virtual std::chrono::milliseconds begin_stage(Ending ending, int status, const std::string& reason) = 0;

  void wait_for_something();
  [[nodiscard]] std::chrono::milliseconds poll_limit() const;
  void read_signals();
  void read_exec_failures();
  using Ended = std::pair<std::size_t, int>;  // the index of a process, and how it ended
  [[nodiscard]] std::vector<Ended> take_ended();
  [[nodiscard]] bool any_dying();
  void look_at_time();
  void show_progress();
  void advance_ending();

  std::optional<int> status_;
  Ending ending_ = Ending::kNo;
  Clock::time_point next_step_{};  // of the end
  Clock::time_point start_{};
  Clock::time_point next_progress_{};
  std::optional<Clock::time_point> timeout_;  // of --timeout
};

}  // namespace shmem::launcher
