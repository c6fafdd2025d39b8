// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/job_runner.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "base/process_activity.hpp"

namespace shmem::launcher {
namespace {

using std::chrono::milliseconds;

/// When a terminal shows for the first time what the job waits for.
constexpr milliseconds kProgress{5000};

bool is_for_pes(int signal) {
  return signal == SIGUSR1 || signal == SIGUSR2;
}

}  // namespace

Result<JobRunner::Tools> JobRunner::Tools::make(Options options, Result<Output> (*open)(const Options&)) {
  auto signals = Signals::block();
  if (!signals) {
    return signals.error();
  }
  auto guard = Guard::start();
  if (!guard) {
    return guard.error();
  }
  auto reports = ExecReports::open();
  if (!reports) {
    return reports.error();
  }
  auto output = open(options);
  if (!output) {
    return output.error();
  }
  return Tools{std::move(options), *std::move(signals), *std::move(guard), *std::move(reports), *std::move(output)};
}

int JobRunner::run() {
  start_ = Clock::now();
  next_progress_ = start_ + kProgress;
  if (tools_.options.timeout) {
    timeout_ = start_ + *tools_.options.timeout;
  }
  start_processes();
  while (any_running()) {
    wait_for_something();
    read_signals();
    read_exec_failures();
    look();
    reap();
    look_at_time();
    show_progress();
    advance_ending();
  }
  return finish();
}

void JobRunner::wait_for_something() {
  const auto outputs = tools_.output.wanted();
  const auto more = inputs();
  std::array<pollfd, 5> polls{pollfd{tools_.signals.fd(), POLLIN, 0}, outputs[0], outputs[1], more[0], more[1]};
  if (::poll(polls.data(), polls.size(), static_cast<int>(poll_limit().count())) > 0) {
    take_inputs({polls[3], polls[4]});
  }
  tools_.output.move();
}

milliseconds JobRunner::poll_limit() const {
  auto until = Clock::now() + kLook;
  if (ending_ != Ending::kNo) {
    until = std::min(until, next_step_);
  }
  if (timeout_) {
    until = std::min(until, *timeout_);
  }
  return std::max(std::chrono::ceil<milliseconds>(until - Clock::now()), milliseconds{0});
}

void JobRunner::read_signals() {
  while (const int signal = tools_.signals.next()) {
    if (signal == SIGCHLD) {
      continue;  // reap() looks anyway
    }
    if (signal == SIGTSTP) {
      stop_with_terminal();
      continue;
    }
    if (is_for_pes(signal)) {
      forward(signal);
      continue;
    }
    if (ending_ == Ending::kKilled) {
      continue;
    }
    if (ending_ == Ending::kTerminated) {  // the second request: at once
      end(128 + signal, "", Ending::kKilled);
      continue;
    }
    const std::string name = fmt::format("signal {} ({})", signal, ::strsignal(signal));
    say("ending the job: " + name);
    end(128 + signal, "oshrun got " + name, Ending::kTerminated);
  }
}

void JobRunner::read_exec_failures() {
  while (const auto failure = tools_.reports.next()) {
    if (ending_ == Ending::kNo) {
      exec_failed(*failure);
    }
  }
}

void JobRunner::reap(bool in_any_case) {
  std::vector<Ended> ended = take_ended();
  const auto is_killed = [](const Ended& one) { return WIFSIGNALED(one.second); };
  const auto has_failed = [](const Ended& one) { return one.second != 0; };
  if (ending_ == Ending::kNo && (in_any_case || std::ranges::any_of(ended, has_failed))) {
    // A process that has lost its connection to a killed one may end before the killed one does.
    const auto limit = Clock::now() + kDying;
    while (std::ranges::none_of(ended, is_killed) && any_dying() && Clock::now() < limit) {
      std::this_thread::sleep_for(milliseconds{1});
      std::ranges::move(take_ended(), std::back_inserter(ended));
    }
  }
  // Among processes that ended together, a killed one is probably the cause and the others the consequence.
  std::stable_partition(ended.begin(), ended.end(), is_killed);
  read_exec_failures();  // a process without its program says so before it ends
  for (const auto& [index, how] : ended) {
    process_ended(index, how);
  }
}

std::vector<JobRunner::Ended> JobRunner::take_ended() {
  std::vector<Ended> ended;
  int wait_status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0) {
    if (pid == tools_.guard.group()) {
      tools_.guard.note_end();
    }
    std::size_t index = 0;
    while (index < processes() && !(process(index).running && process(index).pid == pid)) {
      ++index;
    }
    if (index == processes()) {
      other_ended(pid, wait_status);
      continue;
    }
    process(index).running = false;
    ended.emplace_back(index, wait_status);
  }
  return ended;
}

bool JobRunner::any_dying() {
  for (std::size_t i = 0; i < processes(); ++i) {
    if (process(i).running && base::is_dying(process(i).pid)) {
      return true;
    }
  }
  return false;
}

bool JobRunner::any_running() {
  for (std::size_t i = 0; i < processes(); ++i) {
    if (process(i).running) {
      return true;
    }
  }
  return false;
}

void JobRunner::look_at_time() {
  if (timeout_ && Clock::now() >= *timeout_ && ending_ == Ending::kNo) {
    time_is_over();
  }
}

void JobRunner::show_progress() {
  const bool is_shown = tools_.output.is_error_for_terminal() || ::isatty(STDERR_FILENO) != 0;
  if (ending_ != Ending::kNo || Clock::now() < next_progress_ || tools_.options.part || !is_shown) {
    return;
  }
  const auto passed = Clock::now() - start_;
  next_progress_ = Clock::now() + passed;
  if (const std::string text = progress(std::chrono::duration_cast<std::chrono::seconds>(passed)); !text.empty()) {
    say(text);
  }
}

void JobRunner::end(int status, const std::string& reason, Ending ending) {
  status_ = status_.value_or(status);
  ending_ = ending;
  next_step_ = Clock::now() + begin_stage(ending, status, reason);
}

void JobRunner::advance_ending() {
  if (ending_ == Ending::kNo || Clock::now() < next_step_ || !any_running()) {
    return;
  }
  if (ending_ != Ending::kKilled) {
    return end(status_.value_or(1), "", ending_ == Ending::kTold ? Ending::kTerminated : Ending::kKilled);
  }
  say("processes do not die of SIGKILL (the kernel is busy for them); leaving them");
  for (std::size_t i = 0; i < processes(); ++i) {
    process(i).running = false;
  }
}

void JobRunner::finish_output() {
  // The rest in the pipes, then unfinished lines.
  if (drain_output()) {
    tools_.output.release_all();
    drain_output();
  }
}

bool JobRunner::drain_output() {
  Output& output = tools_.output;
  // While the reader has not taken the pending output, nothing more is read.
  while (output.move() || output.is_pending()) {
    if (!output.is_pending()) {
      continue;
    }
    const auto outputs = output.wanted();
    std::array<pollfd, 3> polls{pollfd{tools_.signals.fd(), POLLIN, 0}, outputs[0], outputs[1]};
    ::poll(polls.data(), polls.size(), static_cast<int>(kLook.count()));
    while (const int signal = tools_.signals.next()) {
      if (signal == SIGTSTP) {
        stop_with_terminal();
      } else if (signal != SIGCHLD && !is_for_pes(signal)) {
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
