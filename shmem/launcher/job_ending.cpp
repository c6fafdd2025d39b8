// SPDX-License-Identifier: Apache-2.0
// How a job ends early: its PEs are told, terminated, and killed; and its last output.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "shmem/launcher/job.hpp"

namespace shmem::launcher {

namespace {

/// How long a killed PE may delay the job: the kernel does not always release a process at once.
constexpr std::chrono::milliseconds kKillLimit{10000};

}  // namespace

void Job::end(int status, const std::string& reason, Ending ending) {
  if (ending_ == Ending::kNo) {
    status_ = status_.value_or(status);
  }
  parts_.memory.end(kLauncher, status, reason);
  ending_ = ending;
  next_step_ = Clock::now() + parts_.options.grace;
  if (ending == Ending::kTerminated) {
    signal_pes(SIGTERM);
  }
  if (ending == Ending::kKilled) {
    signal_pes(SIGKILL);
    next_step_ = Clock::now() + kKillLimit;
  }
}

void Job::advance_ending() {
  if (ending_ == Ending::kNo || Clock::now() < next_step_ || !any_running()) {
    return;
  }
  const int status = status_.value_or(1);
  switch (ending_) {
    case Ending::kNo:
      return;
    case Ending::kTold:
      return end(status, "", Ending::kTerminated);
    case Ending::kTerminated:
      return end(status, "", Ending::kKilled);
    case Ending::kKilled:
      say("PEs do not die of SIGKILL (the kernel is busy for them); leaving them");
      for (Pe& pe : pes_) {
        pe.running = false;
      }
  }
}

void Job::signal_pes(int signal) {
  parts_.guard.signal_group(signal);
  parts_.guard.signal_group(SIGCONT);
  for (const Pe& pe : pes_) {
    if (!pe.running) {
      continue;
    }
    ::kill(pe.pid, signal);  // it may have moved to a group of its own
    ::kill(pe.pid, SIGCONT);
  }
}

void Job::forward(int signal) const {
  for (const Pe& pe : pes_) {
    if (pe.running) {
      ::kill(pe.pid, signal);
    }
  }
}

void Job::stop_with_terminal() {
  parts_.guard.signal_group(SIGSTOP);
  ::kill(::getpid(), SIGSTOP);
  parts_.guard.signal_group(SIGCONT);
}

void Job::finish_output() {
  // The rest in the PEs' pipes, then their unfinished lines.
  if (drain_output()) {
    parts_.output.release_all();
    drain_output();
  }
}

void Job::report_tools() {
  if (!parts_.options.valgrind.empty() && !parts_.options.part) {
    say(valgrind_summary(parts_.options.valgrind, parts_.options.pes()));
    drain_output();
  }
  if (!parts_.profiler) {
    return;
  }
  const auto counts = parts_.profiler->counts(parts_.host);
  if (!parts_.options.part) {
    say(write_report(counts, parts_.options.pes(), parts_.options.profile));
    drain_output();
    return;
  }
  write_to_starter(std::string(kNodeProfile) + encode_counts(counts));
}

void Job::show_last_lines() {
  const auto lines = failed_ ? parts_.output.out_of_sight(*failed_) : std::vector<std::string>();
  if (lines.empty()) {
    return;
  }
  say(fmt::format("the last lines of PE {}:", parts_.options.number(*failed_)));
  for (const std::string& line : lines) {
    say("| " + line);
  }
  drain_output();
}

bool Job::drain_output() {
  Output& output = parts_.output;
  // While the reader has not taken the pending output, nothing more is read.
  while (output.move() || output.is_pending()) {
    if (!output.is_pending()) {
      continue;
    }
    const auto outputs = output.wanted();
    std::array<pollfd, 3> polls{pollfd{parts_.signals.fd(), POLLIN, 0}, outputs[0], outputs[1]};
    ::poll(polls.data(), polls.size(), static_cast<int>(kLook.count()));
    while (const int signal = parts_.signals.next()) {
      if (signal == SIGTSTP) {
        stop_with_terminal();
      }
      if (signal != SIGCHLD && signal != SIGTSTP && !is_for_pes(signal)) {
        return false;
      }
    }
    if (timeout_ && Clock::now() >= *timeout_) {
      return false;
    }
  }
  return true;
}

}  // namespace shmem::launcher
