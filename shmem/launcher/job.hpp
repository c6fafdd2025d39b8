// SPDX-License-Identifier: Apache-2.0
// One job: its PEs from start to end.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shmem/bootstrap/end_reports.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/launcher/binding.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/memory_kills.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/launcher/output.hpp"
#include "shmem/launcher/pe_programs.hpp"
#include "shmem/launcher/profile.hpp"
#include "shmem/launcher/signals.hpp"
#include "shmem/launcher/streams.hpp"
#include "shmem/launcher/support_processes.hpp"

namespace shmem::launcher {

/// Starts the PEs, watches them, and ends all of them when one fails. Owns every process of the job. Used by one
/// thread.
class Job {
 public:
  /// The parts of a job that are made before the first PE starts.
  struct Parts {
    Options options;
    std::vector<std::string> files;  // of the programs
    Binding binding;
    Signals signals;
    JobMemory memory;
    EndReports ends;
    Guard guard;
    ExecReports reports;
    std::optional<DeviceProcess> device;
    std::optional<TerminalInput> terminal;
    Output output;
    std::string host{};  // this machine's name, for messages
    std::optional<Profiler> profiler{};
    ToolCommand tool{};
  };

  explicit Job(Parts parts);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() = default;

  /// Runs until the last PE, and every process that the PEs have started, has ended. Returns the job's exit status.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  /// The poll interval for events that wake no poll(): a PE that ends the job, PEs that wait for one that has left.
  static constexpr std::chrono::milliseconds kLook{100};
  static constexpr int kTimeoutStatus = 124;
  /// Their meaning is the program's; batch systems send them some time before they end a job.
  static bool is_for_pes(int signal) { return signal == SIGUSR1 || signal == SIGUSR2; }

  struct Pe {
    pid_t pid = -1;
    bool running = false;
    bool deserted = false;   // exited with status 0 without leaving the job
    bool is_killed = false;  // because the other PEs have left it out
    int restarts = 0;
  };
  /// Why the job ends early, for its last lines.
  struct Cause {
    std::optional<int> pe;  // empty: oshrun has said why
    std::string text;
    bool is_killed = false;  // the PE was killed by a signal
  };
  /// The stage of an early end.
  enum class Ending { kNo, kTold, kTerminated, kKilled };

  // Starting.
  void start_pes();
  Result<pid_t> start_pe(int pe);
  [[nodiscard]] PePrograms::Common what_pes_share() const;
  void publish_pes() const;

  // Watching.
  void wait_for_something();
  [[nodiscard]] std::chrono::milliseconds poll_limit() const;
  void read_signals();
  void read_exec_failures();
  void reap();
  void pe_ended(int pe, int wait_status);
  /// A PE that the others have survived.
  void pe_lost(int pe, int wait_status);
  void restart(int pe);
  /// Kills PEs that hang: they keep their places from the processes that could be started again.
  void kill_left_out();
  void device_ended(int wait_status);
  [[nodiscard]] std::string text_of(const ExecFailure& failure) const;
  /// How a PE ended, and why the kernel killed it if that is known.
  [[nodiscard]] std::string end_text(int pe, int wait_status) const;
  void look_for_abort();
  /// Tells of a PE that reports its end and is not seen to end: a program that is not a child of oshrun.
  void look_for_reports();
  /// A PE reports an error whose cause may be another PE, which was killed.
  [[nodiscard]] bool may_be_consequence(const JobEnd& ended) const;
  void look_for_deserters();
  void look_at_time();
  void time_is_over();
  /// In a part of a job: what the oshrun says that has started this one.
  void read_lifeline();
  /// On a terminal: which PEs have not started the library, while others wait for them.
  void show_progress();
  /// PEs that run, by whether they have called shmem_init.
  [[nodiscard]] std::vector<int> running_pes(bool joined) const;

  // Ending.
  void end(int status, const std::string& reason, Ending ending);
  void advance_ending();
  void signal_pes(int signal);
  /// To the PEs only, not to what they have started.
  void forward(int signal) const;
  void stop_with_terminal();
  void finish_output();
  /// Says what --profile and --valgrind have found; in a part of a job, to the oshrun that has started this one.
  void report_tools();
  /// Prints the last lines of the PE whose failure ended the job, if they are out of sight.
  void show_last_lines();
  /// Prints why the job ended, once for all PEs.
  void show_cause();
  /// The report of the PE that began it: of this one, or of the first whose report is not a consequence.
  [[nodiscard]] int first_cause(const Cause& cause) const;
  /// A PE has heard why the job ends.
  [[nodiscard]] bool is_told() const;
  /// A PE's own report in one line, and its calls in another.
  [[nodiscard]] std::string text_of(int pe, const PeEnd& end) const;
  void say_calls(int pe, const PeEnd& end);
  /// Waits as long as the reader needs, like any program that writes; false: a signal or --timeout ended that.
  bool drain_output();

  [[nodiscard]] bool any_running() const;
  [[nodiscard]] std::string name_of(int pe) const;
  /// With this machine's name.
  [[nodiscard]] std::string full_name_of(int pe) const { return name_of(pe) + " on " + parts_.host; }

  void say(const std::string& text) { parts_.output.say(text); }

  Parts parts_;
  PePrograms programs_;  // refers to parts_
  MemoryKills memory_kills_;
  std::vector<Pe> pes_;
  std::optional<int> status_;
  std::optional<int> failed_;  // the PE whose failure ended the job
  std::optional<Cause> cause_;
  std::vector<bool> told_;                         // PEs whose reports are printed already
  std::uint32_t reports_seen_ = 0;                 // of parts_.ends
  std::optional<Clock::time_point> unseen_since_;  // since when there is a report of a PE that has not ended
  std::optional<int> lost_;                        // the status of the first PE that the others have survived
  bool someone_finished_ = false;
  Ending ending_ = Ending::kNo;
  Clock::time_point next_step_{};  // of the end
  Clock::time_point start_{};
  Clock::time_point next_progress_{};                // when to say which PEs have not started the library
  bool has_lifeline_ = false;                        // standard input is open: see read_lifeline()
  std::optional<Clock::time_point> timeout_;         // of --timeout
  std::optional<Clock::time_point> deserted_since_;  // since when PEs wait for others that will not come
  std::optional<Clock::time_point> reported_since_;  // since when a PE has reported an error: see look_for_abort()
};

}  // namespace shmem::launcher
