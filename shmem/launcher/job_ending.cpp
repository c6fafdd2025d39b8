// SPDX-License-Identifier: Apache-2.0
// How a job ends early: its PEs are told, terminated, and killed; and its last output.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/size_text.hpp"
#include "shmem/launcher/job.hpp"
#include "shmem/launcher/node_part.hpp"

namespace shmem::launcher {

namespace {

/// How long a killed PE may delay the job: the kernel does not always release a process at once.
constexpr std::chrono::milliseconds kKillLimit{10000};

}  // namespace

std::chrono::milliseconds Job::begin_stage(Ending ending, int status, const std::string& reason) {
  parts_.memory.end(kLauncher, status, reason);
  if (ending == Ending::kTerminated) {
    signal_pes(SIGTERM);
  }
  if (ending == Ending::kKilled) {
    signal_pes(SIGKILL);
    return kKillLimit;
  }
  return tools_.options.grace;
}

void Job::signal_pes(int signal) {
  tools_.guard.signal_group(signal);
  tools_.guard.signal_group(SIGCONT);
  for (const Pe& pe : pes_) {
    if (!pe.running) {
      continue;
    }
    ::kill(pe.pid, signal);  // it may have moved to a group of its own
    ::kill(pe.pid, SIGCONT);
  }
}

void Job::forward(int signal) {
  for (const Pe& pe : pes_) {
    if (pe.running) {
      ::kill(pe.pid, signal);
    }
  }
}

void Job::stop_with_terminal() {
  tools_.guard.signal_group(SIGSTOP);
  ::kill(::getpid(), SIGSTOP);
  tools_.guard.signal_group(SIGCONT);
}

int Job::finish() {
  look_for_abort();
  std::vector<pid_t> kept = {tools_.guard.group()};
  if (parts_.device) {
    kept.push_back(parts_.device->pid());
  }
  const int ended = end_leftovers(kept, tools_.options.grace);
  if (ended > 0 && ending() == Ending::kNo) {
    say(fmt::format("ended {} that PEs had left behind", base::count(ended, "process")));
  }
  finish_output();
  show_last_lines();
  report_tools();
  show_cause();
  // The end of PEs that the others have survived is no failure of the job, unless there is no other.
  return job_status().value_or(someone_finished_ ? 0 : lost_.value_or(0));
}

void Job::report_tools() {
  if (!tools_.options.valgrind.empty() && !tools_.options.part) {
    say(valgrind_summary(tools_.options.valgrind, tools_.options.pes()));
    drain_output();
  }
  if (!parts_.profiler) {
    return;
  }
  const auto counts = parts_.profiler->counts(parts_.host);
  if (!tools_.options.part) {
    say(write_report(counts, tools_.options.pes(), tools_.options.profile));
    drain_output();
    return;
  }
  write_to_starter(std::string(kNodeProfile) + encode_counts(counts));
}

void Job::show_last_lines() {
  const auto lines = failed_ ? tools_.output.out_of_sight(*failed_) : std::vector<std::string>();
  if (lines.empty()) {
    return;
  }
  say(fmt::format("the last lines of PE {}:", tools_.options.number(*failed_)));
  for (const std::string& line : lines) {
    say("| " + line);
  }
  drain_output();
}

}  // namespace shmem::launcher
