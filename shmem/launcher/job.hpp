// SPDX-License-Identifier: Apache-2.0
// One job, or the part of a job on one node: its PEs from start to end.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shmem/bootstrap/end_reports.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/launcher/binding.hpp"
#include "shmem/launcher/job_runner.hpp"
#include "shmem/launcher/memory_kills.hpp"
#include "shmem/launcher/pe_programs.hpp"
#include "shmem/launcher/profile.hpp"
#include "shmem/launcher/streams.hpp"
#include "shmem/launcher/support_processes.hpp"

namespace shmem::launcher {

/// Owns every process of the job.
class Job final : public JobRunner {
 public:
  /// The parts of a job that are made before the first PE starts.
  struct Parts {
    Tools tools;
    std::vector<std::string> files;  // of the programs
    Binding binding;
    JobMemory memory;
    EndReports ends;
    std::optional<DeviceProcess> device;
    std::optional<TerminalInput> terminal;
    std::string host{};  // this machine's name, for messages
    std::optional<Profiler> profiler{};
    ToolCommand tool{};
  };

  explicit Job(Parts parts);

 private:
  struct Pe : Process {
    bool deserted = false;   // exited with status 0 without leaving the job
    bool is_killed = false;  // because the other PEs have left it out
    bool was_dying = false;  // when another PE's report of its end was seen
    int restarts = 0;
  };
  /// Why the job ends early, for its last lines.
  struct Cause {
    std::optional<int> pe;  // empty: oshrun has said why
    std::string text;
    bool is_killed = false;  // the PE was killed by a signal
  };

  std::size_t processes() override { return pes_.size(); }
  Process& process(std::size_t index) override { return pes_[index]; }

  // Starting.
  void start_processes() override;
  Result<pid_t> start_pe(int pe);
  [[nodiscard]] PePrograms::Common what_pes_share() const;
  void publish_pes() const;

  // Watching.
  std::array<pollfd, 2> inputs() override;
  void take_inputs(const std::array<pollfd, 2>& ready) override;
  void look() override;
  void exec_failed(const ExecFailure& failure) override;
  void process_ended(std::size_t index, int wait_status) override;
  void other_ended(pid_t pid, int wait_status) override;
  void pe_ended(int pe, int wait_status);
  /// A PE that the others have survived.
  void pe_lost(int pe, int wait_status);
  void restart(int pe);
  /// Kills PEs that hang: they keep their places from the processes that could be started again.
  void kill_left_out();
  [[nodiscard]] std::string text_of(const ExecFailure& failure) const;
  /// How a PE ended, and why the kernel killed it if that is known.
  [[nodiscard]] std::string end_text(int pe, int wait_status) const;
  void look_for_abort();
  /// Tells of a PE that reports its end and is not seen to end: a program that is not a child of oshrun.
  void look_for_reports();
  /// A PE reports an error whose cause may be any other PE, which was killed. With another status than the library's
  /// own, a program has ended because of an error that a call returned, or for reasons of its own: see Pe::was_dying.
  [[nodiscard]] bool may_be_consequence(const JobEnd& ended) const;
  /// The end of this PE may be why the job ends, although another one may have reported its own before.
  [[nodiscard]] bool may_be_cause(int pe, int wait_status) const;
  /// It is worth waiting for a PE that has been killed.
  bool may_have_another_cause(const JobEnd& ended);
  void look_for_deserters();
  void time_is_over() override;
  /// In a part of a job: what the oshrun says that has started this one.
  void read_lifeline();
  /// Which PEs have not started the library, while others wait for them.
  std::string progress(std::chrono::seconds passed) override;
  /// PEs that run, by whether they have called shmem_init.
  [[nodiscard]] std::vector<int> running_pes(bool joined) const;

  // Ending.
  std::chrono::milliseconds begin_stage(Ending ending, int status, const std::string& reason) override;
  void signal_pes(int signal);
  /// To the PEs only, not to what they have started.
  void forward(int signal) override;
  void stop_with_terminal() override;
  /// Ends every process that the PEs have started.
  int finish() override;
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

  [[nodiscard]] std::string name_of(int pe) const;
  /// With this machine's name.
  [[nodiscard]] std::string full_name_of(int pe) const { return name_of(pe) + " on " + parts_.host; }

  Parts parts_;
  PePrograms programs_;  // refers to parts_ and tools_
  MemoryKills memory_kills_;
  std::vector<Pe> pes_;
  std::optional<int> failed_;  // the PE whose failure ended the job
  std::optional<Cause> cause_;
  std::vector<bool> told_;                         // PEs whose reports are printed already
  std::uint32_t reports_seen_ = 0;                 // of parts_.ends
  std::optional<Clock::time_point> unseen_since_;  // since when there is a report of a PE that has not ended
  std::optional<int> lost_;                        // the status of the first PE that the others have survived
  bool someone_finished_ = false;
  bool has_lifeline_ = false;                        // standard input is open: see read_lifeline()
  std::optional<Clock::time_point> deserted_since_;  // since when PEs wait for others that will not come
  std::optional<Clock::time_point> reported_since_;  // since when a PE has reported an error: see look_for_abort()
};

}  // namespace shmem::launcher
