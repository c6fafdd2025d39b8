// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/job.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/launcher/leftovers.hpp"
#include "shmem/launcher/message.hpp"

namespace shmem::launcher {

namespace {

using std::chrono::milliseconds;

/// What PEs get after each request to end before the next, stronger one.
constexpr milliseconds kGrace{1000};
/// How long a PE may keep the job up after it was killed: the kernel does not always let go of a process.
constexpr milliseconds kKillLimit{10000};
/// How often we look at what nothing wakes us for: a PE that ends the job, PEs that wait in vain.
constexpr milliseconds kLook{100};

constexpr int kTimeoutStatus = 124;
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

std::string exec_error_text(int error) {
  std::string text = std::strerror(error);
  // The file itself was found before.
  if (error == ENOENT) text += " (the interpreter or loader that it names is missing)";
  return text;
}

}  // namespace

int Job::run() {
  if (parts_.options.timeout) timeout_ = Clock::now() + *parts_.options.timeout;
  start_pes();
  while (any_running()) {
    wait_for_something();
    read_signals();
    read_exec_failures();
    look_for_abort();
    reap();
    look_for_deserters();
    if (timeout_ && Clock::now() >= *timeout_ && ending_ == Ending::kNo) {
      say("the job did not end within its --timeout");
      end(kTimeoutStatus, "its time (oshrun --timeout) is over", Ending::kTerminated);
    }
    advance_ending();
  }
  std::vector<pid_t> kept = {parts_.guard.group()};
  if (parts_.device) kept.push_back(parts_.device->pid());
  const int ended = end_leftovers(kept, kGrace);
  if (ended > 0 && ending_ == Ending::kNo)
    say("ended " + std::to_string(ended) + " processes that PEs had left behind");
  return status_.value_or(0);
}

// ---- Starting

Environment Job::common_environment() const {
  Environment environment;
  const std::string& gba = parts_.options.gba;
  if (parts_.device) {
    environment.set("GBA_DEVICE", parts_.device->address());
  } else if (gba == "off") {
    environment.set("SHMEM_GBA", "off");
  } else if (!gba.empty()) {
    environment.set("GBA_DEVICE", gba);
  }
  for (const auto& [name, value] : parts_.options.exports) environment.set(name, value);
  environment.set(kJobFdVariable, std::to_string(parts_.memory.fd()));
  environment.set(kJobSizeVariable, std::to_string(parts_.options.pes));
  return environment;
}

ChildProgram Job::program_of(int pe, const Environment& common) const {
  Environment environment = common;
  environment.set(kJobRankVariable, std::to_string(pe));
  ChildProgram program;
  program.file = parts_.file;
  program.arguments = parts_.options.program;
  program.environment = environment.entries();
  program.tag = pe;
  program.group = parts_.guard.group();
  program.inherited = parts_.memory.fd();
  return program;
}

void Job::start_pes() {
  const Environment common = common_environment();
  pes_.resize(static_cast<std::size_t>(parts_.options.pes));
  for (int pe = 0; pe < parts_.options.pes; ++pe) {
    ChildProgram program = program_of(pe, common);
    if (pe == 0) program.input = parts_.terminal ? parts_.terminal->pipe_end().get() : STDIN_FILENO;
    const auto pid = start(program, parts_.signals.mask_before(), parts_.reports);
    if (!pid) {
      say("cannot start PE " + std::to_string(pe) + ": " + pid.error().text);
      end(1, "oshrun cannot start PE " + std::to_string(pe), Ending::kTerminated);
      break;
    }
    pes_[static_cast<std::size_t>(pe)] = Pe{*pid, true, false};
  }
  if (parts_.terminal) parts_.terminal->pipe_end().reset();
}

// ---- Watching

void Job::wait_for_something() {
  std::array<pollfd, 2> polls{pollfd{parts_.signals.fd(), POLLIN, 0},
                              parts_.terminal ? parts_.terminal->wanted() : pollfd{-1, 0, 0}};
  const int ready = ::poll(polls.data(), polls.size(), static_cast<int>(patience().count()));
  if (ready > 0 && polls[1].revents != 0) parts_.terminal->move();
}

milliseconds Job::patience() const {
  auto until = Clock::now() + kLook;
  if (ending_ != Ending::kNo) until = std::min(until, next_step_);
  if (timeout_) until = std::min(until, *timeout_);
  return std::max(std::chrono::ceil<milliseconds>(until - Clock::now()), milliseconds{0});
}

void Job::read_signals() {
  while (const int signal = parts_.signals.next()) {
    if (signal == SIGCHLD) continue;  // reap() looks anyway
    if (signal == SIGTSTP) {
      stop_with_terminal();
      continue;
    }
    if (ending_ == Ending::kKilled) continue;
    if (ending_ == Ending::kTerminated) {  // asked twice: at once
      end(128 + signal, "", Ending::kKilled);
      continue;
    }
    const std::string name = "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    say("ending the job: " + name);
    end(128 + signal, "oshrun got " + name, Ending::kTerminated);
  }
}

void Job::read_exec_failures() {
  while (const auto failure = parts_.reports.next()) {
    if (ending_ != Ending::kNo) continue;
    say("cannot run " + parts_.file + ": " + exec_error_text(failure->error));
    end(failure->error == ENOENT ? kNotFound : kCannotExecute, "oshrun cannot run the program", Ending::kTerminated);
  }
}

void Job::reap() {
  std::vector<std::pair<int, int>> ended;  // PE, wait status
  int wait_status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0) {
    if (parts_.device && pid == parts_.device->pid()) device_ended(wait_status);
    if (pid == parts_.guard.group()) parts_.guard.note_end();
    const auto pe =
        std::find_if(pes_.begin(), pes_.end(), [&](const Pe& one) { return one.running && one.pid == pid; });
    if (pe == pes_.end()) continue;  // what PEs left behind
    pe->running = false;
    ended.emplace_back(static_cast<int>(pe - pes_.begin()), wait_status);
  }
  // Of those that ended together one that was killed is rather the cause, others the consequence.
  std::stable_sort(ended.begin(), ended.end(),
                   [](const auto& a, const auto& b) { return WIFSIGNALED(a.second) && !WIFSIGNALED(b.second); });
  for (const auto& [pe, how] : ended) pe_ended(pe, how);
}

void Job::pe_ended(int pe, int wait_status) {
  PeSlot& slot = parts_.memory.slot(pe);
  const bool left = slot.state.load(std::memory_order_acquire) == PeState::kLeft;  // pairs with LocalBootstrap::leave()
  const int status = exit_status(wait_status);
  if (ending_ == Ending::kNo && status != 0) {
    const std::string text = name_of(pe) + " " + exit_text(wait_status);
    say(text);
    if (left) {
      status_ = status_.value_or(status);  // the others do not wait for it
    } else {
      end(status, text, Ending::kTold);
    }
  }
  pes_[static_cast<std::size_t>(pe)].deserted = status == 0 && !left;
  slot.exited.store(1, std::memory_order_release);  // pairs with LocalBootstrap::missing()
}

void Job::device_ended(int wait_status) {
  say("the fake device (pid " + std::to_string(parts_.device->pid()) + ") " + exit_text(wait_status) +
      "; the job goes on with software barriers");
  parts_.device->note_end();
}

void Job::look_for_abort() {
  if (ending_ != Ending::kNo) return;
  const auto ended = parts_.memory.ended();
  if (!ended) return;
  const bool by_pe = ended->pe >= 0 && ended->pe < parts_.options.pes;
  if (ended->status != 0) {
    say((by_pe ? name_of(ended->pe) : std::string("a PE")) + " ended the job with status " +
        std::to_string(ended->status) + (ended->reason.empty() ? "" : ": " + ended->reason));
  }
  end(ended->status, ended->reason, Ending::kTold);
}

void Job::look_for_deserters() {
  if (ending_ != Ending::kNo) return;
  std::vector<int> deserters;
  std::vector<int> waiting;
  for (int pe = 0; pe < parts_.options.pes; ++pe) {
    const Pe& one = pes_[static_cast<std::size_t>(pe)];
    if (one.deserted) deserters.push_back(pe);
    // Relaxed: nothing else is read because of it.
    const bool joined = parts_.memory.slot(pe).state.load(std::memory_order_relaxed) == PeState::kJoined;
    if (one.running && joined) waiting.push_back(pe);
  }
  if (deserters.empty() || waiting.empty()) {
    deserted_since_.reset();
    return;
  }
  if (!deserted_since_) deserted_since_ = Clock::now();
  if (Clock::now() - *deserted_since_ < kGrace) return;
  const std::string text = name_of(deserters.front()) + " exited with status 0 without leaving the job " +
                           "(shmem_finalize), and " + pe_list(waiting) + (waiting.size() == 1 ? " is" : " are") +
                           " still in it";
  say(text);
  end(1, text, Ending::kTold);
}

// ---- Ending

void Job::end(int status, const std::string& reason, Ending ending) {
  if (ending_ == Ending::kNo) status_ = status_.value_or(status);
  parts_.memory.end(kLauncher, status, reason);
  ending_ = ending;
  next_step_ = Clock::now() + kGrace;
  if (ending == Ending::kTerminated) signal_pes(SIGTERM);
  if (ending == Ending::kKilled) {
    signal_pes(SIGKILL);
    next_step_ = Clock::now() + kKillLimit;
  }
}

void Job::advance_ending() {
  if (ending_ == Ending::kNo || Clock::now() < next_step_ || !any_running()) return;
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
      for (Pe& pe : pes_) pe.running = false;
  }
}

void Job::signal_pes(int signal) {
  parts_.guard.signal_group(signal);
  parts_.guard.signal_group(SIGCONT);
  for (const Pe& pe : pes_) {
    if (!pe.running) continue;
    ::kill(pe.pid, signal);  // it may have moved to a group of its own
    ::kill(pe.pid, SIGCONT);
  }
}

void Job::stop_with_terminal() {
  parts_.guard.signal_group(SIGSTOP);
  ::kill(::getpid(), SIGSTOP);
  parts_.guard.signal_group(SIGCONT);
}

bool Job::any_running() const {
  return std::any_of(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.running; });
}

std::string Job::name_of(int pe) const {
  return "PE " + std::to_string(pe) + " (pid " + std::to_string(pes_[static_cast<std::size_t>(pe)].pid) + ")";
}

}  // namespace shmem::launcher
